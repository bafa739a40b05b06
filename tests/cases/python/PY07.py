import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
plt.show()
plt.bar(["a", "b"], [3, 4])
plt.show()
