gmt begin unclosed png
gmt basemap -R0/10/0/10 -JX8c -Baf+l"@[\\int_0^1 x^2 dx@["
echo 5 5 | gmt plot -Sa1c -Ggold
