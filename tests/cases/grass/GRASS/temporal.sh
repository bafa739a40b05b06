g.region n=10 s=0 e=10 w=0 res=1
for y in 1 2 3; do r.mapcalc --q "t$y = $y * row()"; done
t.create output=series title=a description=b
t.register -i input=series maps=t1,t2,t3 start=2001-01-01 increment="1 year"
t.rast.series input=series method=average output=mean
r.univar -g mean | grep ^mean=
v.random output=p npoints=20 seed=1
v.db.addtable map=p columns="z double precision"
v.what.rast map=p raster=mean column=z
v.db.select map=p format=csv | head -3
