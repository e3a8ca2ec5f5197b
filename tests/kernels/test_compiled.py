"""Compiled code comes back from disk, without what numba needs to compile."""

import os
import subprocess
import sys

CODE = """
import sys
import numpy as np
from lnml.kernels.cpu.distances import pattern_distances
out = np.empty(1)
pairs = np.array([0, 1]), np.array([0], dtype=np.int32)
pattern_distances(np.array([[0.0, 3.0]]), np.array([[4.0, 0.0]]), *pairs, 0, 1, out)
print(out[0], "numba.np.linalg" in sys.modules, sum(pattern_distances.stats.cache_hits.values()))
# What is not on disk is compiled all the same.
pattern_distances(*np.ones((2, 1, 2), dtype=np.float32), *pairs, 0, 1, out)
print(out[0])
"""


def run(cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_code_on_disk_is_read_without_the_compiler(tmp_path):
    assert run(tmp_path) == ["25.0", "True", "0", "0.0"]
    assert run(tmp_path) == ["25.0", "False", "1", "0.0"]


def test_missing_code_is_compiled_again(tmp_path):
    run(tmp_path)
    for path in tmp_path.rglob("*.nbc"):
        path.unlink()
    assert run(tmp_path)[::3] == ["25.0", "0.0"]
