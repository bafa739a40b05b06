println("café", """a
b""")
x = parse(Int, readline())
include("x.jl")
println(x + y, Threads.nthreads())
error("here")