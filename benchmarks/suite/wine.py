"""Wine, 160 raw rows: columns of very different scales, where the peers stop early."""

from __future__ import annotations

from pathlib import Path

from suite.contest import HEADER, Contest, standings, traces
from suite.report import Group, Line, Table
from suite.rows import bundled
from suite.scale import Scale

REPEATS = 5


def wine(scale: Scale, folder: Path, python: str) -> Group:
    """Require lnml to reach each peer's last objective first, and then a certified optimum."""
    n = scale.wine
    contest = Contest("wine", *bundled("wine", n), folder, python)
    mine = contest.lnml(tol=1e-3, repeats=2 * REPEATS + 1)
    peers = [
        contest.metric_learn(True, REPEATS),
        contest.mlpack("mlpack_lbfgs", True, scale.lbfgs_budgets, REPEATS),
        contest.mlpack("mlpack_default", True, scale.pass_budgets, REPEATS),
    ]
    group = Group(f"Wine, {n} raw rows, LMNN from the identity")
    for run in peers:
        group.lines.append(
            Line(
                f"Wine {n}: speed-up over {run.tool} in reaching its last objective",
                run.seconds / mine.reaches(run.objective),
                1.0,
                unit=" ×",
            )
        )
    bound = mine.values["bound"]
    gap = (mine.objective - bound) / mine.objective
    for run in peers:
        text = f"Wine {n}: {run.tool}'s last objective, as a multiple of lnml's"
        group.lines.append(Line(text, run.objective / mine.objective, 5.0, unit=" ×"))
    group.lines.append(Line(f"Wine {n}: certified gap", gap, 1e-3, at_least=False))
    group.tables.append(Table(HEADER, standings(mine, peers)))
    group.traces[f"Wine, {n} rows"] = traces(mine, peers)
    group.notes = [
        "The rows are a random choice with seed 0; features are raw. Figures of the peers are "
        f"medians of {REPEATS} runs.",
        *(remark for run in (mine, *peers) for remark in run.remarks),
    ]
    return group
