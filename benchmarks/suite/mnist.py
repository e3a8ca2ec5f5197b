"""MNIST on 164 principal components in float32; times are in units of one full pairwise pass."""

from __future__ import annotations

from pathlib import Path

from objectives import lmnn_objective

from suite.exchange import Reply, call
from suite.report import Group, Line, Table
from suite.rows import MissingData, mnist, save
from suite.scale import Scale

TOL = 1e-2
SIZES = (1, 3, 5)
LIMITS = {
    "search": ("one exact impostor search at the identity, in passes", 0.22),
    "lmnn": ("LMNN to a certified gap of 1e-2, in passes", 3.5),
    "lnml": ("LN-LMNN (3, 3, 3), all its rounds, in passes", 16.0),
    "assign": ("one assignment step with its searches, in passes", 2.0),
    "memory": ("peak memory above the data, in MB", 1500.0),
}


def mnist_group(scale: Scale, folder: Path, python: str) -> Group:
    """Measure everything on MNIST; without the data, return lines that say so."""
    n = scale.mnist
    group = Group(f"MNIST, {n:,} × {scale.components} (PCA, float32)")
    try:
        X, y = mnist(n, scale.components)
    except MissingData as reason:
        group.lines = [
            Line(f"MNIST: {text}", None, limit, at_least=False, reason="no data")
            for text, limit in LIMITS.values()
        ]
        group.notes = [f"{reason}."]
        return group
    data = save(folder, "mnist", X=X, y=y)
    full = call("suite.child", "full_pass", data).values
    unit = full["seconds"]
    replies = {
        "search": call("suite.child", "search", data),
        "assign": call("suite.child", "assign", data, sizes=SIZES),
        "lmnn": call("suite.child", "fit_lmnn", data, tol=TOL),
        "lnml": call("suite.child", "fit_lnml", data, tol=TOL),
    }
    measured = {name: reply.values["seconds"] / unit for name, reply in replies.items()}
    for name in ("lmnn", "lnml"):
        if replies[name].values["gap"] > TOL:
            measured[name] = float("inf")
    measured["memory"] = max(replies[name].values["peak_mb"] for name in ("lmnn", "lnml"))
    group.lines = [
        Line(f"MNIST {n:,}: {text}", measured[name], limit, at_least=False)
        for name, (text, limit) in LIMITS.items()
    ]
    group.tables.append(_table(replies, unit))
    group.tables.append(_fits(replies, X, y))
    group.notes = _notes(replies, full)
    return group


def _table(replies: dict[str, Reply], unit: float) -> Table:
    """Seconds, passes and memory of each step."""
    search = replies["search"].values
    rows = [
        ["one full pass", unit, 1.0, None],
        ["exact search at the identity", search["seconds"], None, search["peak_mb"]],
        ["first search of a fit, with its margin", search["first_seconds"], None, None],
    ]
    titles = {
        "assign": f"assignment {SIZES} at the identity, with searches",
        "lmnn": f"LMNN, tol = {TOL:g}",
        "lnml": f"LN-LMNN (3, 3, 3), tol = {TOL:g}",
    }
    for name, title in titles.items():
        values = replies[name].values
        rows.append([title, values["seconds"], None, values["peak_mb"]])
    for row in rows:
        row[2] = row[1] / unit
    return Table(["step", "s", "passes", "peak MB"], rows)


def _fits(replies: dict[str, Reply], X: object, y: object) -> Table:
    """Objectives and gaps of the two fits, computed again."""
    header = ["method", "exact objective", "reported objective"]
    header += ["exact gap", "reported gap", "iterations"]
    table = Table(header)
    for name, title in (("lmnn", "LMNN"), ("lnml", "LN-LMNN")):
        values, arrays = replies[name].values, replies[name].arrays
        exact = lmnn_objective(X, y, arrays["targets"], arrays["L"])
        gap = (exact - values["bound"]) / exact
        row = [title, exact, values["objective"], gap, values["gap"], values["n_iter"]]
        table.rows.append(row)
    return table


def _notes(replies: dict[str, Reply], full: dict[str, float]) -> list[str]:
    search, lnml = replies["search"].values, replies["lnml"].values
    return [
        "One full pass is an n × n × r product in float32, 2,048 rows at a time, with BLAS on all "
        f"cores. It took {full['seconds']:.2f} s (median of 3), at {full['gflops']:.0f} GFLOP/s; "
        f"one thread reached {full['gflops_one_thread']:.0f}. (On a busy machine the two rates are "
        "close. A pass then takes longer, and the times in passes come out too low.)",
        f"The exact search found {search['n_pairs']:,} pairs. The first search of a fit looks "
        f"further and found {search['first_n_pairs']:,}. The requirement is for the exact search.",
        f"LN-LMNN took {lnml['n_rounds']} rounds and "
        + ("converged." if lnml["converged"] else "did not converge."),
        "Here the reported gap counts: it certifies the problem rounded to float32.",
    ]
