import matplotlib
matplotlib.use("TkAgg")
import matplotlib.pyplot as plt
plt.plot([1, 4, 9]); plt.savefig("saved.png"); plt.clf()
plt.plot([9, 4, 1])
plt.figure()
plt.figure(); plt.pause(0.5); plt.plot([1, 1])
