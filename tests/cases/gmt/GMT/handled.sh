# Failures that the script deals with are its own affair.
gmt grdinfo missing.nc 2>/dev/null || echo "no grid, go on"
if ! gmt info missing.txt 2>/dev/null; then echo "no table, go on"; fi
gmt grdinfo missing.nc 2>/dev/null | cat || true
if gmt info missing.txt 2>/dev/null | grep -q x; then echo never; fi
set -eu
gmt grdinfo missing.nc 2>/dev/null && echo never
echo done
