surf (peaks);
print ("peaks.png");
