gmt begin x png,pdf
  gmt basemap -R0/10/0/10 -JX8c -Baf
gmt end
echo done
