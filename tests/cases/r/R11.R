message("a message")
warning("a warning")
write.csv(data.frame(x = 1:3), "good.csv", row.names = FALSE)
