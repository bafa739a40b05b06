import matplotlib.pyplot as plt
plt.plot([1, 2, 3], label="ärger Ωμέγα Привет")
plt.title("中文标题 — 日本語の題名 — 한국어 제목")
plt.xlabel("时间（秒）")
plt.ylabel("振幅")
plt.legend()
plt.savefig("labels.png")
plt.savefig("labels.pdf")
plt.savefig("labels.svg")
