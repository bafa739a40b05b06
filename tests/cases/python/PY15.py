import os
import matplotlib.pyplot as plt
os.makedirs("output/a/b/c", exist_ok=True)
plt.plot([1, 2])
for name in ("here.png", "/sandbox/output/there.png", "/tmp/lost.png", "output/a/b/c/deep.png"):
    plt.savefig(name)
