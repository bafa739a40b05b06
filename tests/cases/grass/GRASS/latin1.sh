import grass.script as gs
print("café")
print(__name__)
raise ValueError("line 4")
