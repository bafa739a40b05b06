g.region n=100 s=0 e=150 w=0 res=1
r.mapcalc "m = row() * col()"
r.out.png input=m output=m.png
r.univar -g m | grep max
