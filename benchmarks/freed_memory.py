"""What it costs to return freed memory at once, as Dask's workers are told to (docs/cluster.md).

``LNML_DATA=folder python benchmarks/freed_memory.py`` fits LMNN to 15,000 rows of MNIST in fresh
processes, in turns: as usual, with Dask's setting, and with that and what a worker of lnml keeps.
It prints the CPU seconds of a second fit, on one thread, and its page faults.
"""

import os
import subprocess
import sys

FIT = """
import resource, time
from suite.rows import mnist
from lnml import LMNN
from lnml.kernels.cluster.allocator import keep_memory
if {keep}:
    keep_memory()
X, y = mnist(15_000, 164)
LMNN(tol=1e-2).fit(X, y)
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
start = time.process_time()
LMNN(tol=1e-2).fit(X, y)
took = time.process_time() - start
print(f"{{took:.2f}} s, {{resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults:,}} faults")
"""
DASK = {"MALLOC_TRIM_THRESHOLD_": "65536"}
WAYS = {"as usual": ({}, False), "as Dask asks": (DASK, False), "as lnml keeps": (DASK, True)}
TURNS = 2


def main():
    """Measure each way in turns."""
    paths = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *sys.path[1:]])
    for _ in range(TURNS):
        for name, (settings, keep) in WAYS.items():
            done = subprocess.run(
                [sys.executable, "-c", FIT.format(keep=keep)],
                env=os.environ | settings | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
                capture_output=True,
                text=True,
                check=True,
            )
            print(f"{name}: {done.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
