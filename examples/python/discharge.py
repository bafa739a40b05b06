"""River discharge: the record, its seasons, its floods (a Gumbel fit of the return level) and how long a flood takes to drain."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

river = pd.read_csv("discharge.csv", parse_dates=["date"], index_col="date")
flow = river["discharge_m3s"]

# Recession: on dry days the flow above base flow decays as exp(-t / tau).
base = flow.quantile(0.02)
dry = (river["rain_mm"] == 0) & (flow.shift() > 1.5 * base)
ratio = ((flow - base) / (flow.shift() - base))[dry]
tau = -1 / np.log(ratio.median())

monthly_peaks = flow.resample("MS").max()
location, scale = stats.gumbel_r.fit(monthly_peaks)
period = np.logspace(np.log10(1.05), 2.2, 100)  # months
level = stats.gumbel_r.ppf(1 - 1 / period, location, scale)
rng = np.random.default_rng(0)
resampled = [stats.gumbel_r.fit(rng.choice(monthly_peaks, monthly_peaks.size)) for _ in range(200)]
band = np.percentile([stats.gumbel_r.ppf(1 - 1 / period, *fit) for fit in resampled], [5, 95], axis=0)

fig, panel = plt.subplot_mosaic([["record", "record"], ["season", "floods"]], figsize=(11, 7), layout="constrained")
record, season, floods = panel["record"], panel["season"], panel["floods"]

record.fill_between(flow.index, flow, base, color="tab:blue", alpha=0.35)
record.plot(flow.index, flow, color="tab:blue", lw=0.8)
record.set(ylabel="discharge (m³ s⁻¹)", title=f"Recession time {tau:.1f} days", xlim=(flow.index[0], flow.index[-1]))
rain = record.twinx()
rain.bar(river.index, river["rain_mm"], width=1, color="grey")
rain.set(ylim=(120, 0), ylabel="rain (mm d⁻¹)")

season.boxplot([flow[flow.index.month == month] for month in range(1, 13)], showfliers=False)
season.set(xlabel="month", ylabel="discharge (m³ s⁻¹)", title="Seasons")

ranks = stats.rankdata(monthly_peaks)
floods.semilogx(1 / (1 - (ranks - 0.44) / (ranks.size + 0.12)), monthly_peaks, "k.", label="monthly peaks")
floods.plot(period, level, color="tab:red", label="Gumbel")
floods.fill_between(period, *band, color="tab:red", alpha=0.2, label="90 % band")
floods.set(xlabel="return period (months)", title="Floods")
floods.legend()

pd.DataFrame({"return_period_months": period, "level_m3s": level}).to_csv(
    "return-levels.csv", index=False, float_format="%.3f"
)
print(f"recession time {tau:.2f} d, Gumbel location {location:.2f}, scale {scale:.2f} m3/s")
plt.show()
