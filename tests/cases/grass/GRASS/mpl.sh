import matplotlib.pyplot as plt
import numpy as np
from grass.script import array as garray, run_command

run_command("g.region", n=50, s=0, e=50, w=0, res=1)
run_command("r.mapcalc", expression="m = row() * col()")
plt.imshow(np.array(garray.array("m")))
plt.title("shown")
plt.show()
plt.figure(); plt.plot([1, 2]); plt.savefig("saved.png")
