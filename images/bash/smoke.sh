# One call to each family of tools, and a figure. No grep -q: it would end the tool before it, which pipefail counts.
set -euo pipefail
gdal_create -of GTiff -outsize 60 40 -bands 1 -ot Float32 -burn 7 -a_srs EPSG:4326 -a_ullr 0 40 60 0 flat.tif
gdal_calc.py -A flat.tif --outfile=twice.tif --calc='A*2' --quiet
gdalinfo -stats twice.tif | grep STATISTICS_MEAN=14 >/dev/null
gdaltransform -s_srs EPSG:4326 -t_srs EPSG:3857 -output_xy <<<"10 50" | grep ^1113194 >/dev/null
cs2cs EPSG:4326 EPSG:32632 <<<"50 9" | grep ^500000.00 >/dev/null
cdo -s -f nc topo,r72x36 topo.nc
ncks -O -d lat,20,30 topo.nc part.nc
ncdump -h part.nc | grep 'lat = 11' >/dev/null
test "$(cdo -s outputf,%.0f -fldmax topo.nc)" -gt 3000
jq -n '[1,2,3] | add' | grep -x 6 >/dev/null
mlr --icsv --ojson --from <(printf 'a,b\n1,2\n') put '$c = $a + $b' | jq -e '.[0].c == 3' >/dev/null
seq 10 | datamash mean 1 | grep -x 5.5 >/dev/null
echo '2^100' | bc | grep ^12676 >/dev/null
seq 4 | parallel -k echo | paste -sd+ | bc | grep -x 10 >/dev/null
sqlite3 :memory: 'select sqrt(2)' | grep ^1.414 >/dev/null
seq 0 0.1 12 | gawk '{ print $1, exp(-$1 / 5) * cos($1) }' > wave.txt
gnuplot -e 'set terminal pngcairo; set output "wave.png"; plot "wave.txt" with lines title "damped, 減衰"'
convert wave.png wave.pdf
pdfinfo wave.pdf | grep 'Pages: *1' >/dev/null
pdftoppm -png -r 50 wave.pdf page
identify wave.png page*.png
