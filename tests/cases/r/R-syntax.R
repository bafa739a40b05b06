x <- 1
cat("one\n")
y <- c(1,
  2 3)
