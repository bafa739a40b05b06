library(ggplot2)
print(ggplot(mtcars, aes(wt, mpg)) + geom_point() + ggtitle("中文 日本語 한국어 é"))
library(notapkg)
