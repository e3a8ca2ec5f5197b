"""Draw the layers of the library, from its code and the contract in pyproject.toml: layers.svg.

    python docs/figures/make_layers.py

A row is a layer, a dot says that it imports from the layer of the column. The contract, which
`make lint` checks, is that all dots are to the left of the diagonal. Imports inside functions and
for type checkers count.
"""

import tomllib
from importlib.util import find_spec
from pathlib import Path

import grimp
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[2]
PICTURE = Path(__file__).with_name("layers.svg")
ALLOWED, FORBIDDEN, GRID = "#1f5fa8", "#c0392b", "#d5d9de"


def layers() -> list[str]:
    """Layers of the contract, the lowest first; the command itself is left out."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return [name for name in reversed(contracts[0]["layers"]) if not name.startswith("_")]


def imports(names: list[str]) -> set[tuple[str, str]]:
    """Pairs of two layers of which the first imports from the second."""
    graph = grimp.build_graph("lnml", exclude_type_checking_imports=False)
    found = set()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            pair = tuple(f"{name}.".split(".")[1] for name in (module, imported))
            if pair[0] != pair[1] and set(pair) <= set(names):
                found.add(pair)
    return found


def purpose(name: str) -> str:
    """First sentence of a layer's docstring."""
    text = Path(find_spec(f"lnml.{name}").origin).read_text(encoding="utf-8")
    sentence = text.split('"""')[1].split("\n")[0].split(". ")[0].rstrip(".")
    return sentence.split(" (")[0].replace("``", "")


def description(found: set[tuple[str, str]]) -> str:
    """All imports in words: kept inside the picture, so that a test can tell whether it is old."""
    return "; ".join(f"{user} imports {used}" for user, used in sorted(found))


def draw() -> None:
    """Write the picture."""
    names = layers()
    found = imports(names)
    n = len(names)
    fig, axes = plt.subplots(figsize=(11, 6.2))
    for row in range(n):
        axes.plot([-0.5, row - 0.5], [row, row], color=GRID, lw=0.6, zorder=1)
        axes.plot([row, row], [row + 0.5, n - 0.5], color=GRID, lw=0.6, zorder=1)
        axes.text(row, row, names[row], ha="left", va="center", fontsize=9, weight="bold")
        axes.text(n + 1.6, row, purpose(names[row]), ha="left", va="center", fontsize=8)
    for user, used in sorted(found):
        row, column = names.index(user), names.index(used)
        color = ALLOWED if column < row else FORBIDDEN
        axes.plot(column, row, "o", ms=6, color=color, zorder=2)
    axes.set_xlim(-1, n + 22)
    axes.set_ylim(n - 0.3, -0.7)
    axes.axis("off")
    fig.tight_layout()
    style = {"svg.fonttype": "none", "svg.hashsalt": "lnml"}
    with plt.rc_context(style):
        fig.savefig(PICTURE, metadata={"Date": None, "Description": description(found)})
    plt.close(fig)


if __name__ == "__main__":
    draw()
