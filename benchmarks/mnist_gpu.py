"""MNIST in full on a GPU, by the study's protocol: 164 components, 1-nearest-neighbour accuracy.

``LNML_DATA=... python benchmarks/mnist_gpu.py`` prints the row of docs/study.md for which the
study on a CPU lets NCA and MCML learn from a tenth of the rows. The first run also compiles, so the
seconds that count are those of a second one.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import torch
from gpu_suite.fits import COMPONENTS
from suite.rows import mnist, mnist_test

from lnml import LMNN, LNML, LNMLCV, MCML, NCA
from lnml.evaluation import predict_nearest
from lnml.report.tables import text_table

METHODS: dict[str, Any] = {
    "Euclidean": None,
    "LMNN": LMNN(tol=1e-2),
    "LN-LMNN": LNML(LMNN(), tol=1e-2),
    "LN-LMNN (CV)": LNMLCV(LMNN(), tol=1e-2),
    "NCA": NCA(),
    "MCML": MCML(tol=1e-2),
}


def main() -> None:
    """Fit each method to all training rows and print accuracy, seconds and gap."""
    warnings.simplefilter("ignore")
    train, y = mnist(60_000, COMPONENTS)
    test, truth = mnist_test(COMPONENTS)
    X, Q = (torch.as_tensor(part, device="cuda") for part in (train, test))
    rows = []
    for name, model in METHODS.items():
        begin = time.perf_counter()
        fitted = None if model is None else model.fit(X, y)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
        near, asked = (X, Q) if fitted is None else (fitted.transform(X), fitted.transform(Q))
        accuracy = 100.0 * float(np.mean(predict_nearest(near, y, asked) == truth))
        gap = getattr(fitted, "duality_gap_", None)
        shown = "" if gap is None or np.isnan(gap) else f"{gap:.1e}"
        rows.append([name, f"{accuracy:.2f}", f"{seconds:.1f}", shown])
    print(text_table(["method", "accuracy %", "seconds", "gap"], rows))


if __name__ == "__main__":
    main()
