png("a.png"); plot(1:10); dev.off()
jpeg("a.jpg"); plot(1:10); dev.off()
tiff("a.tif"); plot(1:10); dev.off()
svg("a.svg"); plot(1:10); dev.off()
