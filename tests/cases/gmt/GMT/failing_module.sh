gmt begin x png
  gmt basemap -R0/10/0/10 -JX8c -Baf
  gmt plot missing.txt -Sc0.2c
gmt end
echo done
