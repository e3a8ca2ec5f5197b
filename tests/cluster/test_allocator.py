"""Workers keep freed memory for the next tile while a fit runs, and return it afterwards."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

import pytest

# Page faults while the same buffer of half a megabyte is taken and freed a hundred times.
SCRIPT = """
import json, resource
import numpy as np
from lnml.kernels.cluster.allocator import keep_memory, return_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        np.ones(2**16)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

found = [faults()]
keep_memory()
faults()
found.append(faults())
return_memory()
found.append(faults())
print(json.dumps(found))
"""


def page_faults(**environment):
    plain = {name: each for name, each in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=plain | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs the allocator of the GNU C library"
)
def test_as_dask_starts_its_workers():
    before, kept, after = page_faults(MALLOC_TRIM_THRESHOLD_="65536")
    assert before > 10_000
    assert kept < 0.05 * before
    assert after > 0.9 * before


@pytest.mark.parametrize("asked", ["no number", "-5", str(2**70), "1e6"])
def test_what_nobody_can_set_is_no_error(asked):
    page_faults(MALLOC_TRIM_THRESHOLD_=asked, MALLOC_MMAP_THRESHOLD_=asked)


def test_elsewhere_nothing_changes():
    assert max(page_faults()) < 2_000
