"""Points cartopy at the Natural Earth files of this image, and says so at once when a file is not among them."""

import os
import warnings

DATA = "/usr/share/scifarm/cartopy"


def update_config(config):
    from cartopy.io.shapereader import NEShpDownloader

    class Bundled(NEShpDownloader):
        def acquire_resource(self, target_path, format_dict):
            name, resolution = format_dict["name"], format_dict["resolution"]
            coarser = {**format_dict, "resolution": "50m"}
            path = self.pre_downloaded_path(coarser)
            if resolution == "10m" and path.exists():
                warnings.warn(f"Natural Earth's 10m {name} is not in this image: drawn at 50m", stacklevel=2)
                return path
            folder = os.path.join(DATA, "shapefiles/natural_earth", format_dict["category"])
            here = sorted(f[3:-4] for f in os.listdir(folder) if f.endswith(".shp")) if os.path.isdir(folder) else []
            raise FileNotFoundError(
                f"Natural Earth's {resolution}_{name} is not in this image, and jobs have no network to fetch it. "
                f"Here are: {', '.join(here) or 'none of its category'}"
            )

    plain = NEShpDownloader.default_downloader()
    config["pre_existing_data_dir"] = DATA
    config["downloaders"]["shapefiles", "natural_earth"] = Bundled(
        target_path_template=plain.target_path_template, pre_downloaded_path_template=plain.pre_downloaded_path_template
    )
