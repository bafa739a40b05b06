cat("café €\n"); print(nchar("café"))
plot(1, main="café")
stop("here")
