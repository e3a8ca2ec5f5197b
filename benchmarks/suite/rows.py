"""The rows that every tool gets: fixed random choices, raw values, integer labels."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np

from lnml.datasets import load_dataset

VARIABLE = "LNML_DATA"


class MissingData(Exception):
    """A data set that does not ship with lnml is missing."""


def bundled(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n random rows (seed 0) of a bundled data set, and their class codes."""
    data = load_dataset(name)
    chosen = np.random.default_rng(0).permutation(len(data.data))[:n]
    codes = np.unique(data.target, return_inverse=True)[1].astype(np.int64)
    return data.data[chosen], codes[chosen]


def mnist(n: int, components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n training rows of MNIST on their principal components, in float32.

    These are all 60,000 in their order, or random ones (seed 0). The components are always those
    of all 60,000.
    """
    X, y = _projected_mnist(components)[0]
    if n >= len(X):
        return X, y
    chosen = np.random.default_rng(0).permutation(len(X))[:n]
    return X[chosen], y[chosen]


def mnist_test(components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the 10,000 test rows of MNIST on the principal components of the training rows."""
    return _projected_mnist(components)[1]


@cache
def _projected_mnist(components: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows with their labels."""
    folder = os.environ.get(VARIABLE)
    path = Path(folder or ".") / "mnist.npz"
    if folder is None or not path.exists():
        raise MissingData(
            f"MNIST is not here: set {VARIABLE} to a directory with mnist.npz, which holds "
            f"X (70,000 x 784, uint8), y and split (0 for the 60,000 training rows)"
        )
    with np.load(path) as stored:
        X, training = stored["X"], stored["split"] == 0
        labels = np.unique(stored["y"], return_inverse=True)[1].astype(np.int64)
    mean = X[training].mean(axis=0)
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for part in _parts(X[training]):
        centred = part - mean
        covariance += centred.T @ centred
    axes = np.linalg.eigh(covariance)[1][:, ::-1][:, :components]
    projected = np.concatenate([((part - mean) @ axes).astype(np.float32) for part in _parts(X)])
    return [(projected[rows], labels[rows]) for rows in (training, ~training)]


def _parts(X: np.ndarray) -> list[np.ndarray]:
    """Cut rows into parts that stay small in float64."""
    return [X[low : low + 4096] for low in range(0, len(X), 4096)]


def save(folder: Path, name: str, **arrays: np.ndarray) -> Path:
    """Write arrays where child processes find them."""
    path = folder / f"{name}.npz"
    np.savez(path, **arrays)
    return path
