"""Write docs/study.json: the figures of a run of the study, without its single rows.

Usage: python docs/figures/summarize_study.py STUDY/study.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def summary(comparison: dict[str, Any]) -> dict[str, Any]:
    """Accuracy, time, memory and proof of every method, fold by fold."""
    methods: dict[str, dict[str, list[Any]]] = {}
    right: dict[str, list[int]] = {}
    for result in comparison["results"]:
        figures = {
            "accuracy": round(sum(result["correct"]) / len(result["correct"]), 6),
            "seconds": round(result["seconds"], 2),
            "peak_mb": round(result["peak_mb"]),
            "gap": result["gap"],
            "converged": result["converged"],
            "chosen": result["chosen"],
        }
        of_method = methods.setdefault(result["method"], {name: [] for name in figures})
        for name, value in figures.items():
            of_method[name].append(value)
        right.setdefault(result["method"], []).extend(result["correct"])
    whole = {name: round(sum(rows) / len(rows), 6) for name, rows in right.items()}
    return {"data": comparison["data"], "accuracy": whole, "folds": methods}


def main() -> None:
    """Read the file named on the command line; write beside the documentation."""
    study = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    provenance = {name: study["provenance"][name] for name in ("settings", "versions", "created")}
    found = {"provenance": provenance, "data": [summary(c) for c in study["comparisons"]]}
    path = Path(__file__).parents[1] / "study.json"
    path.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
