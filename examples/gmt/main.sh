#!/usr/bin/env bash
# Seismicity of the Ionian Sea: coastlines, borders, earthquakes by depth and magnitude, and a section of depths.
gmt set FONT_ANNOT_PRIMARY 9p FONT_LABEL 10p FONT_TITLE 14p MAP_FRAME_TYPE plain

gmt begin seismicity png,pdf E300
  gmt makecpt -Cturbo -T0/250 -I -H > depth.cpt
  gmt coast -R12/30/33/42 -JM16c -Di -Ggray90 -Slightsteelblue1 -Wthinner,gray40 -N1/thinnest,gray60 -A100 \
      -Ba4f2 -BWSne+t"Earthquakes around the Ionian Sea" -Lg14.5/33.8+w300k+u
  gawk '!/^#/ { print $1, $2, $3, 0.018 * 2.2 ^ $4 / 3 }' quakes.txt |
    gmt plot -Sc -Cdepth.cpt -Wthinnest,gray20 -t15
  gmt colorbar -Cdepth.cpt -DJBC+w10c/0.3c+h+o0/0.9c -Baf+l"depth (km)"
  gmt inset begin -DjTR+w3.2c+o0.2c -F+gwhite+p0.5p
    gmt coast -Rg -JG20/38/? -Dc -A5000 -Ggray70 -Slightsteelblue1
    echo 12 33 30 42 | gmt plot -Sr+s -W1p,red
  gmt inset end
  gmt histogram quakes.txt -i2 -R0/300/0/60 -JX16c/4c -T20 -Glightsalmon -W0.5p -Bxaf+l"depth (km)" -Byaf+l"events" -BWSne -Y-7c
gmt end show

gmt info quakes.txt
