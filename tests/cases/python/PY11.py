for i in range(3000):
    print("line", i)
print("x" * 5_000_000)
