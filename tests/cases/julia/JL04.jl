using Plots
plot(sin, 0, 6)
