import getpass, os.path
print(getpass.getuser(), os.path.expanduser("~"), os.access(os.path.expanduser("~"), os.W_OK))
