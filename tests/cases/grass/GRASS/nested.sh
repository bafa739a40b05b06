# A project of the script's own, a second session in it, and Python's way to set one up.
grass -c EPSG:32632 /tmp/projects/utm --exec g.region -p n=10 s=0 e=10 w=0 res=1 | head -3
cat > /tmp/own.py <<'P'
import subprocess, sys
sys.path.append(subprocess.check_output(["grass", "--config", "python_path"], text=True).strip())
import grass.script as gs
import grass.script.setup as gsetup
with gsetup.init("/tmp/projects/utm"):
    print(gs.parse_command("g.proj", flags="g")["srid"])
P
python3 /tmp/own.py
env -u GISBASE -u GISRC -u PYTHONPATH -u LD_LIBRARY_PATH python3 /tmp/own.py
