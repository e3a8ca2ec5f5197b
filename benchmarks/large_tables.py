"""What the plan of ``lnml compare`` for large tables rests on (docs/performance.md).

``sample NAME METHOD`` learns from samples of the training rows and from all of them, and compares
accuracies on rows held out; neighbours are searched among all training rows. ``rounds NAME ROWS``
gives the held-out accuracy of LN-LMNN after each of its rounds. ``fold NAME METHOD ROWS`` measures
one fold of a comparison. ``csv NAME FILE`` writes a table of 50,000 x 30 for ``lnml compare``.
Names are letter, mnist (30 principal components), mixture and letters (Letter repeated, with noise
and 14 columns of noise). All times are CPU seconds.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from mixture import make_mixture
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from lnml import LMNN, LNML, MCML, NCA
from lnml.evaluation.problem import stratified_folds, stratified_sample
from lnml.learning.knn import predict_nearest
from lnml.registry import find_method

DATA = Path(os.environ.get("LNML_DATA", "../shared/data"))
HELD_OUT = 2000
SEEDS = (0, 1, 2)


def letter():
    """Return Letter: 20,000 x 16, 26 classes."""
    with np.load(DATA / "letter.npz") as stored:
        return stored["X"].astype(float), stored["y"]


def mnist():
    """Return 30 principal components of the first 20,000 rows of MNIST."""
    with np.load(DATA / "mnist.npz") as stored:
        X, y = stored[stored.files[0]][:20_000], stored[stored.files[1]][:20_000]
    return PCA(30, random_state=0).fit_transform(X.reshape(len(X), -1) / 255.0), y


def mixture(n=50_000):
    """Return ten overlapping classes of four modes each; 18 of 30 columns are noise."""
    shape = {"n_features": 20, "n_classes": 10, "n_modes": 4, "n_informative": 8, "n_nuisance": 4}
    X, y = make_mixture(n, **shape, separation=1.3, nuisance=3.0, noise=0.5)
    return np.hstack([X, np.random.default_rng(100).normal(size=(n, 10))]), y


def letters(n=50_000):
    """Return Letter two and a half times, with noise, and 14 columns of noise."""
    X, y = letter()
    rows, rng = np.arange(n) % len(X), np.random.default_rng(0)
    noisy = X[rows] + 0.7 * rng.normal(size=(n, X.shape[1]))
    return np.hstack([noisy, 2.0 * rng.normal(size=(n, 14))]), y[rows]


TABLES = {"letter": letter, "mnist": mnist, "mixture": mixture, "letters": letters}


def split(X, y, seed=0):
    """Return training rows and labels, and those held out."""
    rows = np.random.default_rng(seed).permutation(len(X))
    out, inside = rows[:HELD_OUT], np.sort(rows[HELD_OUT:])
    return X[inside], y[inside], X[out], y[out]


def fitted(model, X, y):
    """Fit; return the model and its CPU seconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return model, time.process_time() - start


def right(components, X, y, X_out, y_out):
    """Return which rows held out their nearest training row gets right."""
    inside, outside = (X, X_out) if components is None else (X @ components.T, X_out @ components.T)
    return predict_nearest(inside, y, outside) == y_out


def say(*words):
    """Print a line at once."""
    print(*words, flush=True)


def sample(name, method, most="20000", sizes="1250,2500,5000", dtypes="float64,float32"):
    """Compare fits to samples with the fit to all rows, on the same rows held out."""
    X, y = TABLES[name]()
    X, y, X_out, y_out = split(X[: int(most)], y[: int(most)])
    plans = {
        "as it is": lambda: {"nca": NCA, "mcml": MCML}[method](),
        "fewer steps": lambda: NCA(max_iter=30) if method == "nca" else MCML(tol=1e-2),
    }
    say(name, X.shape, "Euclidean", f"{100 * right(None, X, y, X_out, y_out).mean():.2f} %")
    for dtype in dtypes.split(","):
        for size in map(int, sizes.split(",")):
            for plan, make in plans.items():
                if dtype == "float32" and plan != "as it is":
                    continue
                shown, took = [], []
                for seed in SEEDS:
                    rows = stratified_sample(y, size, seed)
                    model, seconds = fitted(make(), X[rows].astype(dtype), y[rows])
                    metric = model.components_.astype(float)
                    shown.append(100 * right(metric, X, y, X_out, y_out).mean())
                    took.append(seconds)
                values = " ".join(f"{value:.2f}" for value in shown)
                say(name, method, dtype, size, plan, values, f"{np.mean(took):.1f} s")
    for plan, make in plans.items():
        model, seconds = fitted(make(), X, y)
        accuracy = 100 * right(model.components_, X, y, X_out, y_out).mean()
        say(name, method, "float64 all", len(y), plan, f"{accuracy:.2f} {seconds:.1f} s")


def rounds(name, n_rows):
    """Print objective and held-out accuracy after each round of LN-LMNN."""
    X, y, X_out, y_out = split(*TABLES[name]())
    rows = stratified_sample(y, int(n_rows), 0)
    spent = [0.0]

    def after(state):
        seconds = time.process_time() - spent[0] - start
        before = time.process_time()
        accuracy = 100 * right(state.components, X, y, X_out, y_out).mean()
        told = {k: state.record.get(k) for k in ("round", "objective", "tol", "n_changed")}
        say(name, n_rows, told, f"{accuracy:.2f} % {seconds:.1f} s")
        spent[0] += time.process_time() - before

    start = time.process_time()
    fitted(LNML(LMNN(), callback=after), X[rows], y[rows])


def fold(name, key, n_rows):
    """Measure the first of ten folds."""
    X, y = TABLES[name]()
    rows = stratified_sample(y, int(n_rows), 0)
    X, y = X[rows], y[rows]
    train, test = stratified_folds(y, 10, 0)[0]
    method = find_method(key)
    if method.scale == "standard":
        X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    model, seconds = method.make(0), 0.0
    if model is not None:
        model, seconds = fitted(model, X[train], y[train])
    start = time.process_time()
    metric = None if model is None else model.components_
    accuracy = 100 * right(metric, X[train], y[train], X[test], y[test]).mean()
    voted = time.process_time() - start
    steps = getattr(model, "n_iter_", None)
    say(name, len(train), key, f"fit {seconds:.1f} s, vote {voted:.1f} s, {accuracy:.2f} %", steps)


def csv(name, path):
    """Write a table with the columns c0, c1, ... and label."""
    X, y = TABLES[name]()
    header = ",".join([*(f"c{k}" for k in range(X.shape[1])), "label"])
    lines = (
        ",".join([*(f"{v:.5f}" for v in row), str(label)]) for row, label in zip(X, y, strict=True)
    )
    Path(path).write_text("\n".join([header, *lines, ""]))


if __name__ == "__main__":
    {"sample": sample, "rounds": rounds, "fold": fold, "csv": csv}[sys.argv[1]](*sys.argv[2:])
