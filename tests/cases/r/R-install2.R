install.packages("fuzzyjoin", repos="https://cran.example.org")
library(fuzzyjoin)
