"""Find labels that were flipped on purpose: LNML's trust beside two simpler rules.

``python benchmarks/label_noise.py`` flips 5 % of the labels of each bundled data set, ranks the
rows by several rules and prints, as Markdown, how many of the flipped rows are among the worst 5 %
and 10 %. Every rule sees the same flips; numbers are means over the seeds.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from suite.rows import bundled

from lnml import LMNN, LNML, AveragedMetric, least_trusted
from lnml.report.tables import text_table

ROWS = {
    "iris": 150,
    "wine": 178,
    "sonar": 208,
    "ionosphere": 351,
    "balance_scale": 625,
    "letter": 2000,
}
SHARE = 0.05
NEIGHBORS = 10


def flipped(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels, a share of them replaced at random, and the rows that were changed."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(y), round(SHARE * len(y)), replace=False)
    classes = np.unique(y)
    noisy = y.copy()
    for row in rows:
        noisy[row] = rng.choice(classes[classes != y[row]])
    return noisy, rows


def disagreement(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rank rows by the share of their nearest rows that have another label, largest first.

    Among equal shares, the row that is farthest from a row of its own label comes first.
    """
    distances, nearest = NearestNeighbors(n_neighbors=NEIGHBORS).fit(X).kneighbors()
    other = y[nearest] != y[:, None]
    closest = np.where(other, np.inf, distances).min(axis=1)
    return np.lexsort((-closest, -other.mean(axis=1)))


def trust(
    sizes: tuple[int, int, int], max_rounds: int = 100
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the ranking of LNML with the given sizes, after at most ``max_rounds`` rounds."""

    def rank(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        model = LNML(LMNN(), k_min=sizes[0], k_av=sizes[1], k_max=sizes[2], max_rounds=max_rounds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", message="classes too small")
            return least_trusted(model.fit(X, y), None)

    return rank


def averaged_trust(n_subsamples: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the ranking by means over fits of two rounds to so many subsamples."""

    def rank(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        fits = LNML(LMNN(), k_min=1, k_av=3, k_max=5, max_rounds=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return least_trusted(AveragedMetric(fits, n_subsamples=n_subsamples).fit(X, y), None)

    return rank


def learned_disagreement(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rank rows by the disagreement of their neighbours in the learned metric."""
    model = LNML(LMNN(), k_min=1, k_av=3, k_max=5).fit(X, y)
    return disagreement(model.transform(X), y)


RULES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "trust, (1, 3, 5)": trust((1, 3, 5)),
    "after 1 round": trust((1, 3, 5), 1),
    "after 2 rounds": trust((1, 3, 5), 2),
    "2 rounds, mean of 4": averaged_trust(4),
    "2 rounds, mean of 10": averaged_trust(10),
    "after 5 rounds": trust((1, 3, 5), 5),
    "trust, (3, 3, 3)": trust((3, 3, 3)),
    "neighbours, raw": disagreement,
    "neighbours, scaled": lambda X, y: disagreement(StandardScaler().fit_transform(X), y),
    "neighbours, learned": learned_disagreement,
}


def found(order: np.ndarray, wrong: np.ndarray, share: float) -> float:
    """Return the share of the flipped rows that are among the worst."""
    worst = order[: round(share * len(order))]
    return float(np.isin(wrong, worst).mean())


def measure(name: str, seeds: int) -> list[str]:
    """Return one line of the table: worst 5 % / worst 10 %, in per cent."""
    X, y = bundled(name, ROWS[name])
    cells = [name, f"{len(X):,}"]
    noisy = [flipped(y, seed) for seed in range(seeds)]
    for rule in RULES.values():
        orders = [(rule(X, labels), wrong) for labels, wrong in noisy]
        shares = [
            100 * np.mean([found(order, wrong, share) for order, wrong in orders])
            for share in (SHARE, 2 * SHARE)
        ]
        cells.append(f"{shares[0]:.0f} / {shares[1]:.0f}")
    return [*cells, f"{100 * SHARE:.0f} / {200 * SHARE:.0f}"]


def main() -> None:
    """Measure all data sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--seeds", type=int, default=5, help="random flips (default 5)")
    options = parser.parse_args()
    header = ["data", "rows", *RULES, "chance"]
    print(f"flipped rows found in the worst 5 % / 10 %, in %, mean of {options.seeds} seeds\n")
    print(text_table(header, [measure(name, options.seeds) for name in options.data]))


if __name__ == "__main__":
    main()
