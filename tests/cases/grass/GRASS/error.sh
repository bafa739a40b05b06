g.region -p >/dev/null
r.info nosuchmap
