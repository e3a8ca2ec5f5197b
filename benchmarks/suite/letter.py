"""Letter, 4,000 and 18,000 rows: LMNN from the identity, side by side with the peers."""

from __future__ import annotations

from pathlib import Path

from suite.contest import HEADER, Contest, check_weights, standings, traces
from suite.report import Group, Line, Table
from suite.rows import bundled
from suite.scale import Scale

MLPACK_ITERATIONS = 64
ROWS = "The rows are a random choice with seed 0; features are raw. Push weight 0.5, k = 3."


def letter(scale: Scale, folder: Path, python: str) -> Group:
    """All peers on 4,000 rows."""
    n = scale.letter
    contest = Contest("letter", *bundled("letter", n), folder, python)
    mine = contest.lnml(tol=1e-4, repeats=3)
    first = contest.metric_learn(scale.both_thread_counts)
    second = contest.mlpack("mlpack_lbfgs", scale.both_thread_counts, scale.lbfgs_budgets)
    third = contest.mlpack("mlpack_default", False, scale.pass_budgets)
    peers = [first, second, third]
    group = Group(f"Letter, {n:,} rows, LMNN from the identity")
    for run, required in ((first, 50.0), (second, 20.0)):
        group.lines.append(
            Line(
                f"Letter {n:,}: speed-up over {run.tool} in reaching its last objective",
                run.seconds / mine.reaches(run.objective),
                required,
                unit=" ×",
            )
        )
    group.tables.append(Table(HEADER, standings(mine, peers)))
    group.traces[f"Letter, {n:,} rows"] = traces(mine, peers)
    group.notes = [ROWS, *check_weights(folder, python)]
    group.notes += [remark for run in (mine, *peers) for remark in run.remarks]
    return group


def letter_large(scale: Scale, folder: Path, python: str) -> Group:
    """Compare with mlpack's L-BFGS on 18,000 rows; lnml runs to a certified gap of 1e-3."""
    n = scale.letter_large
    contest = Contest("letter_large", *bundled("letter", n), folder, python)
    mine = contest.lnml(tol=1e-3, repeats=3)
    peer = contest.mlpack("mlpack_lbfgs", False, (4, 16), last=MLPACK_ITERATIONS)
    group = Group(f"Letter, {n:,} rows, LMNN to a certified gap of 1e-3")
    bound = mine.values["bound"]
    gap = (mine.objective - bound) / mine.objective
    above = peer.objective / mine.objective - 1.0
    group.lines = [
        Line(f"Letter {n:,}: certified gap", gap, 1e-3, at_least=False),
        Line(f"Letter {n:,}: full searches", mine.values["n_searches"], 8, at_least=False),
        Line(
            f"Letter {n:,}: time to reach that gap, as a share of the time that mlpack L-BFGS "
            f"takes for {MLPACK_ITERATIONS} iterations (its objective is then {above:.0%} higher)",
            mine.seconds / peer.seconds,
            0.1,
            at_least=False,
        ),
    ]
    group.tables.append(Table(HEADER[:-1], [row[:-1] for row in standings(mine, [peer])]))
    group.notes = [ROWS, *mine.remarks, *peer.remarks]
    reached = ", ".join(
        f"{value:,.0f} after {seconds:.0f} s"
        for value, seconds in zip(peer.objectives, peer.times, strict=True)
    )
    group.notes.append(
        f"mlpack L-BFGS was stopped after {MLPACK_ITERATIONS} iterations; without this limit it "
        f"had not ended after nine minutes. Its objective no longer falls: {reached}."
    )
    group.notes.append(
        "mlpack's default is left out here, because its time grows with the square of the number "
        "of rows. metric-learn would take too long as well."
    )
    return group
