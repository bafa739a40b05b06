x <- "a
b"
print(x)
if (TRUE) {
  print(commandArgs(TRUE))
}
source("helper.R")
f(1)