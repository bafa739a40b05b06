# The standard library's heavy parts, threads, and a figure through the capture, with Plots where the image has it.
using LinearAlgebra, Statistics, Random, Dates, DelimitedFiles, SparseArrays, Distributed, Printf

A = Symmetric(randn(MersenneTwister(1), 200, 200))
values, vectors = eigen(A)
@assert norm(A * vectors - vectors * Diagonal(values)) < 1e-9
@assert mean(1:9) == 5
@assert (sparse([1, 2], [1, 2], [2.0, 4.0]) \ [2.0, 4.0]) == [1.0, 1.0]
writedlm("smoke.csv", [1 2; 3 4], ',')
@assert readdlm("smoke.csv", ',') == [1 2; 3 4]
total = Threads.Atomic{Int}(0)
Threads.@threads for i in 1:1000
    Threads.atomic_add!(total, i)
end
@assert total[] == 500500

if Base.find_package("Plots") !== nothing
    @eval using Plots, CSV, DataFrames, Luxor
    savefig(plot(sin, 0, 6), "smoke.png")
    @assert filesize("smoke.png") > 5000
    plot(1:10)
end
