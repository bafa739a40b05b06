"""Michaelis-Menten kinetics: fit the initial rates of an enzyme, with a bootstrap band and the residuals."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import curve_fit


def rate(substrate, v_max, k_m):
    return v_max * substrate / (k_m + substrate)


data = pd.read_csv("kinetics.csv")
s, v = data["substrate_mM"].to_numpy(), data["rate_uM_per_s"].to_numpy()
start = v.max(), np.median(s)
best, _ = curve_fit(rate, s, v, p0=start)

rng = np.random.default_rng(7)
draws = np.array([curve_fit(rate, s[i], v[i], p0=start)[0] for i in rng.integers(0, len(s), (500, len(s)))])
low, high = np.percentile(draws, [2.5, 97.5], axis=0)
for name, unit, value, a, b in zip(("V_max", "K_M"), ("µM/s", "mM"), best, low, high):
    print(f"{name:6}= {value:6.2f} {unit:5} (95 % {a:.2f} to {b:.2f})")

grid = np.geomspace(s.min() / 1.5, s.max() * 1.3, 300)
band = np.percentile([rate(grid, *draw) for draw in draws], [2.5, 97.5], axis=0)
mean = data.groupby("substrate_mM")["rate_uM_per_s"].agg(["mean", "std"])

plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})
figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.2, 6), height_ratios=(3, 1), sharex=True, layout="constrained")
top.fill_between(grid, *band, color="#9ecae1", alpha=0.6, lw=0, label="95 % bootstrap band")
top.plot(grid, rate(grid, *best), color="#08519c", lw=2, label="fit")
top.plot(s, v, ".", color="0.6", ms=5, label="replicates")
top.errorbar(mean.index, mean["mean"], mean["std"], fmt="o", color="#d94801", ms=5, capsize=3, label="mean ± s.d.")
top.axhline(best[0], color="0.4", ls=":", lw=1)
top.axvline(best[1], color="0.4", ls=":", lw=1)
top.annotate(
    rf"$V_\mathrm{{max}}$ = {best[0]:.1f} µM s$^{{-1}}$", (grid[0], best[0]), (0, -14), textcoords="offset points"
)
top.annotate(rf"$K_\mathrm{{M}}$ = {best[1]:.2f} mM", (best[1], 0), (6, 4), textcoords="offset points")
top.set(ylabel="initial rate (µM s$^{-1}$)", title="Michaelis–Menten kinetics", xscale="log", ylim=(0, best[0] * 1.15))
top.legend(frameon=False, loc="center left")
bottom.axhline(0, color="0.4", lw=1)
bottom.plot(s, v - rate(s, *best), "o", color="#d94801", ms=4, alpha=0.7)
bottom.set(xlabel="substrate (mM)", ylabel="residual")
figure.savefig("kinetics.png", dpi=160)

pd.DataFrame({"parameter": ["v_max", "k_m"], "estimate": best, "low": low, "high": high}).to_csv("fit.csv", index=False)
