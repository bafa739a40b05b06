cat("one\n"); x <- 2
sqrt("a")
