import cartopy.crs as ccrs
import cartopy.feature as cfeature
import matplotlib.pyplot as plt
ax = plt.axes(projection=ccrs.Robinson())
for feature in (cfeature.LAND, cfeature.OCEAN, cfeature.BORDERS, cfeature.LAKES, cfeature.RIVERS, cfeature.STATES):
    ax.add_feature(feature)
ax.coastlines()
ax.gridlines()
plt.savefig("world.png", dpi=150)
fig = plt.figure()
ax = plt.axes(projection=ccrs.PlateCarree())
ax.set_extent([5, 15, 40, 48])
ax.coastlines("10m")
ax.add_feature(cfeature.NaturalEarthFeature("physical", "lakes", "50m"), facecolor="lightblue")
plt.savefig("alps.png")
