# Text, a fit, a surface and each cairo terminal.
set table $points
plot [0:5] 2*x + 1
unset table
f(x) = a*x + b
set fit quiet logfile "/dev/null"
fit f(x) $points using 1:2 via a, b
if (abs(a - 2) > 1e-3 || abs(b - 1) > 1e-3) { exit status 1 }
set title "Фаза, 相位 — é"
plot sin(x)
set output "smoke.pdf"
set terminal pdfcairo
splot x*y with pm3d
set output "smoke.svg"
set terminal svg
replot
