"""Terrain analysis of a small catchment: relief, slopes, streams and the basin above an outlet."""

import grass.script as gs

gs.run_command("g.proj", flags="c", epsg=32632)
gs.run_command("r.in.gdal", input="elevation.asc", output="elevation", flags="o", quiet=True)
gs.run_command("g.region", raster="elevation")

gs.run_command("r.relief", input="elevation", output="relief", altitude=50, azimuth=315, quiet=True)
gs.run_command("r.slope.aspect", elevation="elevation", slope="slope", quiet=True)
gs.run_command(
    "r.watershed",
    elevation="elevation",
    accumulation="flow",
    drainage="direction",
    stream="streams",
    threshold=250,
    quiet=True,
)
gs.run_command("r.to.vect", flags="s", input="streams", output="streams", type="line", quiet=True)
gs.run_command("r.contour", input="elevation", output="contours", step=20, quiet=True)

# The basin of the cell that drains most of all.
outlet = gs.read_command("r.stats", flags="gn", input="flow", quiet=True).splitlines()
x, y, _ = max((line.split() for line in outlet), key=lambda cell: float(cell[2]))
gs.run_command("r.water.outlet", input="direction", output="basin", coordinates=f"{x},{y}", quiet=True)
gs.run_command("r.to.vect", flags="s", input="basin", output="basin", type="area", quiet=True)

gs.run_command("r.colors", map="elevation", color="elevation", quiet=True)
gs.run_command("r.shade", shade="relief", color="elevation", output="shaded", brighten=40, quiet=True)
gs.run_command("d.rast", map="shaded")
gs.run_command("d.vect", map="contours", color="110:90:70", width=0)
gs.run_command("d.vect", map="streams", color="30:80:200", width=3)
gs.run_command("d.vect", map="basin", type="boundary", color="red", width=3)
gs.run_command("d.legend", raster="elevation", at="5,45,3,6", title="m", fontsize=18)
gs.run_command("d.barscale", at="55,10", fontsize=18, length=1000)
gs.run_command("d.text", text="Catchment, streams and relief", at="3,95", size=4, color="black")

area = float(gs.parse_command("r.univar", map="basin", flags="g")["n"]) * 25**2 / 1e6
gs.mapcalc("basin_slope = if(basin, slope, null())")
slope = gs.parse_command("r.univar", map="basin_slope", flags="ge", percentile=90)
print(f"outlet at {float(x):.0f}, {float(y):.0f} drains {area:.2f} km²")
print(f"slope: mean {float(slope['mean']):.1f}°, 90th percentile {float(slope['percentile_90']):.1f}°")
