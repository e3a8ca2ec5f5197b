"""What each of nine workers takes for a fit, beside the bytes of the data."""

from __future__ import annotations

from sklearn import config_context
from suite.report import Group, Line, Table

from cluster_suite.contest import phases_of
from cluster_suite.growth import MB, made_on_workers
from cluster_suite.measure import moved_bytes, peak_bytes, reset_peak, workers
from cluster_suite.model import shares
from lnml import LMNN

WORKERS = 9
# What a worker should take above its base at most, as a share of the bytes of the data.
MOST = 0.8
# MiB of mapped rows and of candidate pairs that a worker may keep.
WORKING_MEMORY = 64
# Classes further apart than in the other groups: rows, not candidate pairs, take the memory.
PROBLEM = {"separation": 3.0, "nuisance": 1.0, "noise": 0.03, "informative": 12}
# Fewer components than columns: mapped rows are short, and mapping them is quick.
COMPONENTS = 32
# Columns of a first fit to as many rows, so that every worker has run all of its code.
FIRST_COLUMNS = 32


def memory(rows: int, columns: int) -> Group:
    """Fit LMNN on nine worker processes; measure the peak of each."""
    group = Group("Memory of nine workers")
    header = ["rows", "columns", "data MB", "s", "gap", "rows kept by a worker, %"]
    table = Table([*header, "largest worker peak / data", "client peak / data", "moved / data"])
    X, y = made_on_workers(rows, features=columns, **PROBLEM)
    with workers(WORKERS) as client:
        # Compiled code and buffers belong to the base.
        LMNN(n_components=COMPONENTS, tol=0.05).fit(
            *made_on_workers(rows, features=FIRST_COLUMNS, **PROBLEM)
        )
        base, own = client.run(reset_peak), reset_peak()
        before = moved_bytes()
        with config_context(working_memory=WORKING_MEMORY):
            took, model, _ = phases_of(LMNN(n_components=COMPONENTS, tol=0.05), X, y)
        peaks = client.run(peak_bytes)
        worker = max(peaks[name] - base[name] for name in peaks) / X.nbytes
        assert len(peaks) == len(base) == WORKERS, "a worker was lost"
        table.rows.append(
            [rows, columns, X.nbytes / MB, took, model.duality_gap_,
             100.0 * shares(rows, WORKERS)[0], worker, (peak_bytes() - own) / X.nbytes,
             (moved_bytes() - before) / X.nbytes]
        )  # fmt: skip
    group.tables.append(table)
    group.lines.append(Line("Peak of a worker above its base / data", worker, MOST, False))
    group.notes.append(
        f"The rows are made on the workers. The base is the state after a first fit to "
        f"{FIRST_COLUMNS} columns of such rows. `working_memory` is {WORKING_MEMORY} MiB."
    )
    return group
