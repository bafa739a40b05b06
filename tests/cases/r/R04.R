text <- "\u2265 é 中文"
cat(text, "\n")
writeLines(text, "text.txt")
stopifnot(identical(readLines("text.txt"), text))
