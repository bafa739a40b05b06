"""Imports what the image promises, uses the parts with compiled code and data files, and draws two figures."""

import importlib
import pathlib
import sys

import matplotlib.pyplot as plt
import numpy as np

for name in """scipy pandas seaborn statsmodels.api sklearn.ensemble sympy xarray netCDF4 h5py networkx PIL skimage.filters geopandas
        rasterio pyproj cartopy numba joblib requests yaml openpyxl obspy astropy lmfit tables shapely dask""".split():
    importlib.import_module(name)

import cartopy.crs as ccrs
import joblib
import numba
import obspy
import pandas as pd
import statsmodels.api as sm
import xarray as xr

rng = np.random.default_rng(1)
x = np.linspace(0, 10, 200)
y = 2 * x + 1 + rng.normal(0, 0.5, x.size)


@numba.njit
def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


assert abs(total(x) - x.sum()) < 1e-9
fit = sm.OLS(y, sm.add_constant(x)).fit()
assert abs(fit.params[1] - 2) < 0.1, fit.params
xr.DataArray(y, coords={"x": x}, dims="x", name="y").to_netcdf("smoke.nc")
assert xr.open_dataset("smoke.nc").y.size == 200
pd.DataFrame({"x": x, "y": y}).to_excel("smoke.xlsx")
assert sum(joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-n) for n in range(4))) == 6
trace = obspy.Trace(np.sin(x))
trace.filter("lowpass", freq=0.1)

plt.plot(x, y, ".")
plt.title("текст, 中文, 日本語, 한국어")
plt.show()
axes = plt.axes(projection=ccrs.Robinson())
axes.coastlines()
plt.show()

for figure in ("figure-1.png", "figure-2.png"):
    if not pathlib.Path(figure).stat().st_size > 5000:
        sys.exit(f"{figure} is blank")
