import numpy, threadpoolctl
numpy.linalg.svd(numpy.random.rand(500, 500))
print({pool["num_threads"] for pool in threadpoolctl.threadpool_info()})
