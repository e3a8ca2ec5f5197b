"""How many evaluations LMNN takes to prove its default tolerance, data set by data set.

    python benchmarks/lagging_bound.py
    python benchmarks/lagging_bound.py --old ../old --sets segment sonar

A line is a fit with default parameters: evaluations of the objective, searches (iterations), CPU
seconds of all threads, the proved gap, and whether the fit warned. ``--old`` names another
checkout; both fit each data set in turns, in a process each. Data that do not ship with lnml are
read from the directory that the environment variable LNML_DATA names, and are left out without
it. ``--large`` adds those that take minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from lnml.datasets import MissingDataError, load_dataset, load_large_dataset
from lnml.evaluation.problem import stratified_sample

Table = tuple[np.ndarray, np.ndarray]
N_WORDS = 2500


def bundled(name: str) -> Table:
    """Return a data set that ships with lnml."""
    data = load_dataset(name)
    return data.data, data.target


def development(name: str) -> Table:
    """Return a data set of the folder dev."""
    path = Path(os.environ.get("LNML_DATA", "."), "dev", f"{name}.npz")
    if not path.exists():
        raise MissingDataError(f"LNML_DATA has no dev/{name}.npz")
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["X"].astype(np.float64), arrays["y"]


def standardised(load: Callable[[], Table]) -> Table:
    """Return columns of mean zero and variance one."""
    X, y = load()
    return StandardScaler().fit_transform(X), y


def principal(load: Callable[[], Table], n_rows: int, n_components: int) -> Table:
    """Return a stratified sample of rows (seed 0) on its principal components."""
    X, y = load()
    kept = stratified_sample(np.unique(y, return_inverse=True)[1], n_rows, 0)
    return PCA(n_components, svd_solver="full").fit_transform(X[kept]), y[kept]


def texts(name: str, *, counts: bool = False) -> Table:
    """Return TF-IDF weights or counts of the most frequent words, without empty rows."""
    data = load_large_dataset(name)
    words = (CountVectorizer if counts else TfidfVectorizer)(max_features=N_WORDS)
    X = words.fit_transform(data.data).toarray().astype(np.float64)
    kept = X.any(axis=1)
    return X[kept], data.target[kept]


def poisson(n: int, n_words: int, n_classes: int) -> Table:
    """Return sparse counts whose rates differ between classes by a factor of about two."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.3, 0.2, n_words) * rng.lognormal(0.0, 0.7, (n_classes, n_words))
    y = np.arange(n) % n_classes
    return rng.poisson(rates[y]).astype(np.float64), y


def isolet() -> Table:
    """Return all rows and columns of Isolet."""
    data = load_large_dataset("isolet", download=False)
    return data.data, data.target


def mnist(n_rows: int) -> Table:
    """Return training rows of MNIST on 164 principal components, in float32."""
    data = load_large_dataset("mnist", download=False)
    X, y = data.data[data.split == 0].astype(np.float32), data.target[data.split == 0]
    X = PCA(164, svd_solver="covariance_eigh").fit_transform(X).astype(np.float32)
    return X[:n_rows], y[:n_rows]


def sklearn_digits() -> Table:
    """Return the digits of scikit-learn."""
    return load_digits(return_X_y=True)


def breast_cancer() -> Table:
    """Return the breast cancer data of scikit-learn."""
    return load_breast_cancer(return_X_y=True)


def first(load: Callable[[], Table], n_rows: int) -> Table:
    """Return the first rows."""
    X, y = load()
    return X[:n_rows], y[:n_rows]


RAW: dict[str, Callable[[], Table]] = {
    "iris": partial(bundled, "iris"),
    "wine": partial(bundled, "wine"),
    "balance": partial(bundled, "balance_scale"),
    "sonar": partial(bundled, "sonar"),
    "ionosphere": partial(bundled, "ionosphere"),
    "segment": partial(development, "segment"),
    "libras": partial(development, "movement_libras"),
    "vehicle": partial(development, "vehicle"),
    "cancer": breast_cancer,
    "digits": sklearn_digits,
}
SETS = {
    **RAW,
    **{f"{name}, standardised": partial(standardised, load) for name, load in RAW.items()},
    "dna 640 x 100": partial(principal, partial(development, "dna_splice"), 640, 100),
    "abstracts 640 x 100": partial(principal, partial(texts, "medical_abstracts"), 640, 100),
    "abstracts 640 x 100, counts": partial(
        principal, partial(texts, "medical_abstracts", counts=True), 640, 100
    ),
    "counts 864 x 100": partial(principal, partial(poisson, 864, 857, 9), 864, 100),
    "counts 864 x 100, standardised": partial(
        principal, partial(standardised, partial(poisson, 864, 857, 9)), 864, 100
    ),
    "letter 4,000": partial(first, partial(bundled, "letter"), 4000),
    "letter 18,000": partial(first, partial(bundled, "letter"), 18000),
    "satimage": partial(development, "satimage"),
    "dna": partial(development, "dna_splice"),
}
LARGE = {
    "letter": partial(bundled, "letter"),
    **{
        f"{name} x 300": partial(principal, partial(texts, name), 10**9, 300)
        for name in ("medical_abstracts", "gad", "hoc", "ade")
    },
    "mnist 10,000": partial(mnist, 10000),
    "isolet": isolet,
    "mnist": partial(mnist, 60000),
}
ALL = {**SETS, **LARGE}


def fit(name: str) -> dict[str, float | str]:
    """Fit LMNN to a data set, after a small fit that compiles."""
    from lnml import LMNN

    X, y = ALL[name]()
    LMNN(max_iter=2).fit(*bundled("iris"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        model = LMNN().fit(X, y)
        seconds = time.process_time() - start
    return {
        "size": "{:,} × {:,}".format(*X.shape),
        "evaluations": sum(record["n_evaluations"] for record in model.history_),
        "iterations": model.n_iter_,
        "seconds": seconds,
        "objective": model.objective_,
        "gap": model.duality_gap_,
        "warns": ", ".join(sorted({each.category.__name__ for each in caught})),
    }


def measured(name: str, checkout: Path) -> dict[str, float | str]:
    """Fit in a process of its own, by the sources of a checkout."""
    command = [sys.executable, __file__, "--one", name]
    place = {
        **os.environ,
        "PYTHONPATH": str(checkout.resolve() / "src"),
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(command, env=place, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-4000:]}")
    found: dict[str, float | str] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print a Markdown table, a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, help="another checkout, to compare with")
    parser.add_argument(
        "--sets", nargs="+", choices=ALL, help="data sets (default: all small ones)"
    )
    parser.add_argument("--large", action="store_true", help="the large data sets, too")
    parser.add_argument("--one", choices=ALL, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(fit(options.one)))
        return
    here = Path(__file__).resolve().parents[1]
    checkouts = {"new": here} if options.old is None else {"old": options.old, "new": here}
    header = ["data", "size", "commit", "evaluations", "iterations", "CPU s", "objective", "gap"]
    print("| " + " | ".join([*header, "warns"]) + " |\n" + "|---" * (len(header) + 1) + "|")
    for name in options.sets or (ALL if options.large else SETS):
        for side, checkout in checkouts.items():
            try:
                found = measured(name, checkout)
            except RuntimeError as error:
                if "MissingDataError" not in str(error):
                    raise
                print(f"| {name} | left out: not in LNML_DATA |")
                break
            print(
                f"| {name} | {found['size']} | {side} | {found['evaluations']} | "
                f"{found['iterations']} | {found['seconds']:.2f} | {found['objective']:.6g} | "
                f"{found['gap']:.1e} | {found['warns']} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
