print(Sys.timezone())
now <- Sys.time()
stopifnot(abs(as.numeric(as.POSIXct(format(now)) - now)) < 1)
