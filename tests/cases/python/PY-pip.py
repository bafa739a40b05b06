import subprocess,sys
sys.exit(subprocess.call([sys.executable,"-m","pip","install","polars"]))
