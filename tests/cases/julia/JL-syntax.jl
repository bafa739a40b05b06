x = 1
y = (2
println("word")
