# Loads what the image promises, uses the parts with system libraries behind them, and draws two figures.
suppressPackageStartupMessages({
  for (name in c("tidyverse", "data.table", "sf", "terra", "cowplot", "patchwork", "ggthemes", "RColorBrewer", "viridis", "lme4",
                 "survival", "MASS", "plotrix", "knitr", "rmarkdown", "svglite", "ragg", "Cairo", "jsonlite", "readxl", "ncdf4",
                 "forecast", "vegan", "igraph", "deSolve", "glmnet", "multcomp", "rnaturalearth", "stars"))
    library(name, character.only = TRUE)
})

model <- lmer(Reaction ~ Days + (Days | Subject), sleepstudy)
stopifnot(abs(fixef(model)[["Days"]] - 10.467) < 0.01)

earth <- ne_countries(returnclass = "sf")
stopifnot(nrow(earth) > 150, grepl("4326", st_crs(st_transform(earth, 4326))$input))
raster <- rast(volcano)
writeRaster(raster, "smoke.tif")
stopifnot(identical(dim(rast("smoke.tif")), dim(raster)))

writeLines(c("---", "title: Smoke", "output: html_document", "---", "```{r}", "plot(1:3)", "```"), "smoke.Rmd")
render("smoke.Rmd", quiet = TRUE)
stopifnot(file.size("smoke.html") > 1e5)

ggsave("smoke.svg", ggplot(mtcars, aes(wt, mpg)) + geom_point(), width = 4, height = 3)
print(ggplot(earth) + geom_sf() + coord_sf(crs = "+proj=robin") + ggtitle("мир, 世界, 세계"))
plot(survfit(Surv(time, status) ~ sex, lung))
