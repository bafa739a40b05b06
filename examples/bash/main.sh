#!/bin/bash
# Flood report of two gauges: cleaned table, peaks and travel time, and a hydrograph.
set -euo pipefail

mlr --icsv --ocsv filter 'is_not_empty($level_m)' then sort -f station -f time gauge.csv >clean.csv
echo "hours without a level: $(($(wc -l <gauge.csv) - $(wc -l <clean.csv)))"

mlr --icsv --ojson --from clean.csv \
  top -n 1 -f level_m -g station -a then cut -of station,time,level_m >peaks.json
jq -r '.[] | "\(.station): peak \(.level_m) m at \(.time)"' peaks.json
jq -r 'map(.time + ":00Z" | fromdate) | sort | "the wave travels \((.[1] - .[0]) / 3600) h"' peaks.json

for station in Upper Lower; do
  mlr --icsv --onidx --ofs tab filter "\$station == \"$station\"" then cut -of time,level_m,rain_mm clean.csv >"$station.tsv"
done
gnuplot <<'PLOT'
set terminal pngcairo size 1000,500 font ",11"
set output "hydrograph.png"
set xdata time; set timefmt "%Y-%m-%dT%H:%M"; set format x "%d %b"
set ylabel "level (m)"; set y2label "rain (mm/h)"; set y2range [40:0]; set y2tics; set ytics nomirror
set yrange [0:6]; set key top center; set grid x
plot "Upper.tsv" using 1:3 axes x1y2 with impulses lc rgb "#88aadd" title "rain", \
     "Upper.tsv" using 1:2 with lines lw 2 lc rgb "#cc5522" title "upper gauge", \
     "Lower.tsv" using 1:2 with lines lw 2 lc rgb "#225588" title "lower gauge"
PLOT
rm Upper.tsv Lower.tsv
