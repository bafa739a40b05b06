f <- function(x) {
  y <- x
  stop("in helper")
}
