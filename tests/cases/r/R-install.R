install.packages("fuzzyjoin")
library(fuzzyjoin)
