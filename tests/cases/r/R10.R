print(sum(as.numeric(readLines(file("stdin")))))
answer <- readline("name? ")
stopifnot(answer == "")
