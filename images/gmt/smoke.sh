# Coastlines of three resolutions, borders, a grid by spherical math, contours, LaTeX labels, GDAL, classic mode, an animation frame.
set -e
gmt begin smoke png,pdf
  gmt subplot begin 1x2 -Fs9c -M0.5c -A
    gmt grdmath -R-20/40/30/70 -I0.5 X D2R SIN Y D2R COS MUL = wave.nc
    gmt makecpt -Cvik -T-0.7/0.7
    gmt grdimage wave.nc -JM9c -Baf -C -c0
    gmt grdcontour wave.nc -C0.1 -A0.2
    gmt coast -Di -W0.5p -N1 -EIT,FR+gorange@50
    gmt basemap -R0/10/0/10 -JX9c -Bxaf+l"@[\int_0^t x^2\,\mathrm{d}x@[" -Bya -c1
    gmt math -T0/10/0.1 T SIN 4 MUL 5 ADD = | gmt plot -W2p,red
    echo 5 9 "Zürich" | gmt text -F+f12p
  gmt subplot end
gmt end
for resolution in c l i h f; do gmt coast -R-6/-4/55/57 -D$resolution -W -M | wc -l; done
gdalinfo -stats wave.nc | grep STATISTICS_MAXIMUM >/dev/null
psbasemap -R0/1/0/1 -JX5c -Ba > classic.ps
psconvert -A -Tg classic.ps
for file in smoke.png smoke.pdf classic.png; do test -s $file; done
