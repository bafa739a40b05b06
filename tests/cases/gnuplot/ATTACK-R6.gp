print system("id -un")
plot "< seq 5" with lines
set output "own.png"
plot x
