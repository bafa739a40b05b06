using Plots
plot(1:10, (1:10) .^ 3, yscale = :log10, xlabel = "x label", ylabel = "y label")
savefig("log.png")
