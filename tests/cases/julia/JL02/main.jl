using LinearAlgebra, Statistics, Dates
using Mymod
println(norm([3, 4]), " ", mean([1, 2]), " ", Mymod.twice(4))
