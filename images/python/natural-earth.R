# natural-earth.R OUT GSHHG: writes the map data of this image as shapefiles under the names that cartopy looks for. Coasts,
# land, countries and states are Natural Earth's; lakes and rivers, which Debian's package lacks, are GSHHG's, thinned to match.
suppressPackageStartupMessages(library(sf))
sf_use_s2(FALSE)
arguments <- commandArgs(TRUE)
earth <- new.env()
lazyLoad(file.path(system.file("data", package = "rnaturalearthdata"), "Rdata"), earth)

save <- function(shapes, category, scale, name) {
  if (!inherits(shapes, "sf")) shapes <- st_sf(featurecla = rep(name, length(shapes)), geometry = shapes)
  folder <- file.path(arguments[1], category)
  dir.create(folder, recursive = TRUE, showWarnings = FALSE)
  names(shapes)[names(shapes) != attr(shapes, "sf_column")] <- toupper(setdiff(names(shapes), attr(shapes, "sf_column")))
  st_write(shapes, file.path(folder, sprintf("ne_%dm_%s.shp", scale, name)), quiet = TRUE, layer_options = "ENCODING=UTF-8")
}

# GSHHG as basemap ships it: a table (type, area, points, south, north, first byte, bytes) and pairs of 4-byte lon, lat.
gshhg <- function(name, level, keep) {
  file <- function(kind) file.path(arguments[2], sprintf("%s_%s.dat", kind, level))
  table <- read.table(file(paste0(name, "meta")), fill = TRUE)
  table <- table[keep(table), ]
  from <- file(name)
  bytes <- readBin(from, "raw", file.size(from))
  lapply(seq_len(nrow(table)), function(i)
    matrix(readBin(bytes[table[i, 6] + seq_len(table[i, 7])], "numeric", table[i, 7] / 4, size = 4, endian = "little"), ncol = 2, byrow = TRUE))
}
in_range <- function(points) ifelse(points > 180, points - 360, points)
length_km <- function(line) sum(111.2 * sqrt(diff(line[, 2])^2 + (diff(line[, 1]) * cos(mean(line[, 2]) * pi / 180))^2))

for (scale in c(110, 50)) suppressWarnings(suppressMessages({
  of <- function(set) st_make_valid(earth[[paste0(set, scale)]])
  countries <- of("countries")
  land <- st_union(countries)
  save(of("coastline"), "physical", scale, "coastline")
  save(st_cast(land, "POLYGON"), "physical", scale, "land")
  world <- st_as_sfc(st_bbox(c(xmin = -180, ymin = -90, xmax = 180, ymax = 90), crs = st_crs(land)))
  save(st_cast(st_difference(world, land), "POLYGON"), "physical", scale, "ocean")

  save(countries, "cultural", scale, "admin_0_countries")
  save(of("map_units"), "cultural", scale, "admin_0_map_units")
  save(of("sovereignty"), "cultural", scale, "admin_0_sovereignty")
  save(earth[[paste0("tiny_countries", scale)]], "cultural", scale, "admin_0_tiny_countries")
  # A border is where two countries' outlines run along each other.
  outlines <- st_geometry(countries)
  pairs <- which(as.matrix(as.data.frame(st_touches(countries, sparse = FALSE))), arr.ind = TRUE)
  pairs <- pairs[pairs[, 1] < pairs[, 2], ]
  borders <- do.call(c, lapply(seq_len(nrow(pairs)), function(i) st_intersection(outlines[pairs[i, 1]], outlines[pairs[i, 2]])))
  borders <- st_collection_extract(borders, "LINESTRING")
  save(st_line_merge(st_cast(borders, "MULTILINESTRING")), "cultural", scale, "admin_0_boundary_lines_land")

  states <- st_make_valid(earth$states50)
  if (scale == 110) states <- states[states$adm0_a3 == "USA", ]   # as Natural Earth itself has it
  save(states, "cultural", scale, "admin_1_states_provinces")
  save(states, "cultural", scale, "admin_1_states_provinces_lakes")
  save(st_cast(st_boundary(st_geometry(states)), "MULTILINESTRING"), "cultural", scale, "admin_1_states_provinces_lines")

  level <- if (scale == 110) "c" else "l"
  smallest_lake <- if (scale == 110) 5000 else 400   # km2
  lakes <- gshhg("gshhs", level, function(t) t[, 1] == 2 & t[, 2] > smallest_lake)
  lakes <- lapply(lakes, function(ring) { ring[, 1] <- in_range(ring[, 1]); st_polygon(list(rbind(ring, ring[1, ]))) })
  save(st_make_valid(st_sfc(lakes, crs = 4326)), "physical", scale, "lakes")
  shortest_river <- if (scale == 110) 500 else 100   # km, of one stretch
  rivers <- lapply(gshhg("rivers", level, function(t) t[, 3] > 5), function(line) { line[, 1] <- in_range(line[, 1]); line })
  rivers <- Filter(function(line) diff(range(line[, 1])) < 180 && length_km(line) > shortest_river, rivers)
  save(st_sfc(lapply(rivers, st_linestring), crs = 4326), "physical", scale, "rivers_lake_centerlines")
}))
