pkg install -forge mapping2
