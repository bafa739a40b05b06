# Two isotopes decaying together: a weighted fit of both half-lives, the residuals below.
set fit quiet logfile "fit.log" errorvariables
counts(t) = n1*exp(-log(2)*t/half1) + n2*exp(-log(2)*t/half2) + background
n1 = 1000; half1 = 10; n2 = 1000; half2 = 2; background = 20
fit counts(x) "decay.dat" using 1:2:3 yerrors via n1, half1, n2, half2, background

set terminal pngcairo size 1000,800 font "Sans,12"
set multiplot
set lmargin 10
set rmargin 3
set xrange [0:45]
set grid

set size 1,0.7; set origin 0,0.3
set bmargin 0
set format x ""
set ylabel "counts in 10 s"
set logscale y
set yrange [10:4000]
set key top right
set label 1 sprintf("T_{1/2} = %.2f ± %.2f min\nT_{1/2} = %.2f ± %.2f min", half1, half1_err, half2, half2_err) at graph 0.55,0.7
plot "decay.dat" with yerrorbars pt 7 ps 0.6 lc rgb "#555555" title "measured", \
     counts(x) lw 2 lc rgb "#c0392b" title "both isotopes", \
     n1*exp(-log(2)*x/half1) dt 2 lc rgb "#2980b9" title "long-lived", \
     n2*exp(-log(2)*x/half2) dt 3 lc rgb "#27ae60" title "short-lived", \
     background dt 4 lc rgb "#888888" title "background"

unset label 1
unset logscale y
unset bmargin
set size 1,0.3; set origin 0,0
set tmargin 0
set format x "%g"
set xlabel "time (min)"
set ylabel "residual (σ)"
set yrange [-4:4]
set ytics -2,2,2
plot "decay.dat" using 1:(($2 - counts($1))/$3) with impulses lc rgb "#555555" notitle, 0 lc rgb "black" notitle
unset multiplot
print sprintf("half-lives %.2f and %.2f min, background %.1f", half1, half2, background)
