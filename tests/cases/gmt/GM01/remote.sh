gmt begin topo png
  gmt grdimage @earth_relief_60m -JH15c
gmt end
