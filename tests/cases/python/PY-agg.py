import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.plot([1,2])
plt.show()
plt.savefig("late.png")
plt.figure(); plt.title("$\\frac{$"); plt.plot([3,4])
