library(ggplot2)
p <- ggplot(mtcars, aes(wt, mpg)) + geom_point()
ggsave("a.png", p)
