"""Rasters, vectors, hydrology, time series, GDAL, PyGRASS, a display and a Matplotlib figure."""

import matplotlib.pyplot as plt
import numpy as np
from osgeo import gdal

import grass.script as gs
from grass.pygrass.raster import RasterRow
from grass.script import array as garray

gdal.UseExceptions()
gs.run_command("g.proj", flags="c", epsg=32632)
gs.run_command("g.region", n=5201000, s=5200000, e=401500, w=400000, res=10)
gs.mapcalc("height = 300 + 80 * sin(2 * row()) + 50 * cos(3 * col()) + row()")
gs.run_command("r.slope.aspect", elevation="height", slope="slope", aspect="aspect", quiet=True)
gs.run_command("r.watershed", elevation="height", accumulation="flow", stream="streams", threshold=300, quiet=True)
gs.run_command("r.to.vect", flags="s", input="streams", output="streams", type="line", quiet=True)
gs.run_command("r.contour", input="height", output="contours", step=25, quiet=True)
gs.run_command("r.neighbors", input="height", output="smooth", size=5, nprocs=2, quiet=True)
gs.run_command("v.random", output="points", npoints=40, seed=1, quiet=True)
gs.run_command("v.db.addtable", map="points", columns="height double precision", quiet=True)
gs.run_command("v.what.rast", map="points", raster="height", column="height", quiet=True)
gs.run_command("v.surf.rst", input="points", zcolumn="height", elevation="rebuilt", quiet=True)
gs.run_command("t.create", output="series", title="t", description="d", quiet=True)
gs.run_command(
    "t.register", input="series", maps="height,smooth", start="2001-01-01", increment="1 year", flags="i", quiet=True
)
gs.run_command("r.out.gdal", input="height", output="height.tif", format="GTiff", quiet=True)

statistics = gs.parse_command("r.univar", map="slope", flags="g")
assert 0 < float(statistics["max"]) < 90
assert gdal.Open("height.tif").RasterXSize == 150
with RasterRow("height") as rows:
    assert len(rows) == 100

gs.run_command("r.colors", map="height", color="elevation", quiet=True)
gs.run_command("d.rast", map="height")
gs.run_command("d.vect", map="contours", color="brown")
gs.run_command("d.vect", map="streams", color="blue", width=2)
gs.run_command("d.text", text="Höhe 高さ", color="black", size=5, at="3,93")

plt.hist(np.array(garray.array("height")).ravel(), bins=30)
plt.show()
