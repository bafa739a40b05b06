function f(x)
  sqrt(x)
end
println(abspath(PROGRAM_FILE) == @__FILE__, ARGS)
for i in 1:2
  f(-i)
end
println("word")
