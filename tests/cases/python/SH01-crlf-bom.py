import sys
print("""a
b""", sys.argv)
import helper
1/0