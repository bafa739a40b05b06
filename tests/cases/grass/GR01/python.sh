#!/usr/bin/env python3
import sys

import grass.script as gs
from grass.pygrass.modules.shortcuts import raster as r

gs.run_command("g.region", n=100, s=0, e=150, w=0, res=1)
gs.run_command("r.mapcalc", expression="m = row() * col()")
r.colors(map="m", color="viridis")
gs.run_command("r.out.png", input="m", output="m.png")
print(gs.raster_info("m")["max"], sys.argv[1:], __file__)
