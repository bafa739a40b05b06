"""Every package that the image is there for, once, and a figure."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import curve_fit

rng = np.random.default_rng(1)
t = np.linspace(0, 5, 60)
table = pd.DataFrame({"t": t, "y": 3 * np.exp(-0.8 * t) + rng.normal(0, 0.05, t.size)})
(amplitude, rate), _ = curve_fit(lambda t, a, k: a * np.exp(-k * t), table["t"], table["y"])
assert np.allclose((amplitude, rate), (3, 0.8), atol=0.1), (amplitude, rate)
table.plot.scatter("t", "y")
plt.savefig("smoke.png")
