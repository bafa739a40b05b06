#!/bin/sh
# A loop in a sub-shell, a pipe, xargs and a nested sh all plot into the session of the script; four sessions run at once.
figure() {
  gmt begin "map$1" png
  gmt basemap -R0/10/0/10 -JX8c -Baf -B+t"Map $1"
  printf '%s\n' "1 1" "5 5" "9 9" | while read -r x y; do
    echo "$x $y" | gmt plot -Sc0.5c -Gred
  done
  echo "5 2 $1" | (gmt text -F+f30p)
  echo 2 8 | xargs -I{} sh -c 'echo {} | gmt plot -Ss0.6c -Gblue'
  gmt end show
}
for i in 1 2 3 4; do (figure $i) & done
wait
