# GMT 4 and 5 style: PostScript by redirection, modules by their bare names.
gmtset FONT_TITLE 18p
psbasemap -R0/10/0/10 -JX8c -Ba2f1:"x":/a2f1:"y"::."Classic": -K > map.ps
echo 5 5 | gmt psxy -R -J -Sc1c -Gred -O >> map.ps
psconvert -A -Tg map.ps
