# a comment
x <- 1

f <- function(n) {
  if (n > 0)
    stop("too big")
  n
}
g <- function(n) {
  y <- 1
  f(n)
}
for (i in 1:2) {
  y <- 2
  g(i)
}
cat("never\n")
