"""As many workers of pytest as cores, which they share with the kernels and processes they start.

Stands here to be read before anything imports torch. Your own OMP_NUM_THREADS is kept.
"""

import os

known = hasattr(os, "sched_getaffinity")  # the cores that this process may use
CORES = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
    share = max(1, CORES // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    os.environ.setdefault("OMP_NUM_THREADS", str(share))


def pytest_xdist_auto_num_workers(config) -> int:
    """Of ``-n auto``; a worker and its kernel want a gigabyte, and a file has one worker."""
    return min(CORES, 8)
