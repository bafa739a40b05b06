#!/bin/bash
# A window monitor, two pages, a monitor that writes its own file, and d.out.file.
g.region n=100 s=0 e=150 w=0 res=1
r.mapcalc --q "m = sin(3 * row()) + cos(5 * col())"
d.mon start=wx0
d.rast m
d.legend raster=m at=10,90,2,5
d.text text="Höhe, 高さ" at=5,95 size=6 color=black
d.erase
d.rast.arrow map=m type=grass skip=10 || exit 3
d.erase
d.rast m; d.grid size=25; d.out.file output=saved format=png
d.mon stop=wx0
d.mon start=cairo output=own.png width=300 height=200
d.rast m
d.mon stop=cairo
