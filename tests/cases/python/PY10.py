import time
print("before the end")
time.sleep(600)
