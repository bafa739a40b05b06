print("café €")

1/0
