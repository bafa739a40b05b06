set terminal qt size 800,500 enhanced font 'Verdana,10' persist title "x"
set title "Фаза 相位 — é {/Symbol a}^2"
plot sin(x) lw 2
pause -1 "hit return"
set term x11; splot x*y with pm3d
set term svg; set output; plot cos(x)
set term dumb 60 15; plot x**2
set term pngcairo; set output "own.png"; plot x
set term jpeg; set output; plot x
print "printed"
