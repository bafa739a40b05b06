plot sin(x)
