import Pkg
Pkg.add("CSV")
