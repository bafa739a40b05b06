# Ghostscript breaks (stands for a full disk, a missing font); the last command is fine.
mkdir /tmp/broken && printf '#!/bin/sh\nexit 1\n' > /tmp/broken/gs && chmod +x /tmp/broken/gs
PATH=/tmp/broken:$PATH
gmt begin x png,pdf
  gmt basemap -R0/10/0/10 -JX8c -Baf
gmt end
echo done
