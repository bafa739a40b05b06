x=1
plot sin(x)
plot "nothere.dat"