"""Workers of pytest, and the kernels and processes that they start, share the cores.

Stands here to be read before anything imports torch. Your own OMP_NUM_THREADS is kept.
"""

import os

if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
    known = hasattr(os, "sched_getaffinity")  # the cores that this process may use
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    share = max(1, cores // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    os.environ.setdefault("OMP_NUM_THREADS", str(share))
