"""The check shares no code with what it checks, and needs no long double to be right."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lnml.certificates
from lnml.certificates import Certificate, verify

FOLDER = Path(lnml.certificates.__file__).parent


def test_it_imports_numpy_and_the_standard_library_alone():
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            for name in names:
                own = name.startswith("lnml.certificates.") or name == "numpy"
                assert own or name.split(".")[0] in sys.stdlib_module_names, (path.name, name)


WITHOUT_LONG_DOUBLE = """
from dataclasses import replace
import numpy as np
np.longdouble = np.float64
import proofs
from lnml.certificates import arithmetic, verify
assert arithmetic.EPS == 2.0**-52
X, y = proofs.data()
for make in proofs.MAKERS.values():
    certificate = make(X, y)
    # What is stated may be below what double can prove, but not by much.
    lower = replace(certificate, bound=certificate.bound * (1 - 1e-9), gap=1.0)
    found = verify(lower, X, y)
    assert found.holds, (make, found)
    assert found.objective_error <= 1e-10 * found.objective, (make, found)
    assert not verify(replace(certificate, bound=certificate.bound * 1.001), X, y).holds
"""


def test_it_is_right_where_long_double_is_double():
    tests = Path(__file__).parents[1]
    paths = [str(tests), str(FOLDER.parents[1])]
    program = f"import sys; sys.path[:0] = {paths!r}\n{WITHOUT_LONG_DOUBLE}"
    subprocess.run([sys.executable, "-c", program], check=True)


def certificate(method, parameters, **others):
    made = {"components": np.eye(2), "objective_error": 0.0, "gap": 1e-9, "coordinates": np.eye(2)}
    return Certificate(method=method, parameters=parameters, **{**made, **others})


def test_rows_that_do_not_differ_at_all():
    X, y = np.ones((4, 2)), [0, 0, 1, 1]
    nothing = {"coordinates": np.zeros((2, 0)), "left_out": 2}
    targets = [[0, 1], [1, 0], [2, 3], [3, 2]]
    triplets = [[t, l] for t in range(4) for l in ((2, 3) if t < 2 else (0, 1))]
    duals = {"targets": targets, "triplets": triplets, "slopes": np.ones(8)}
    proof = certificate("lmnn", {"push_weight": 0.5}, objective=4, bound=4, duals=duals, **nothing)
    assert verify(proof, X, y).holds
    duals = {"dual_shares": [1.0], "dual_components": np.eye(2)[None]}
    value = 4 * np.log(3.0)
    proof = certificate("mcml", {}, objective=value, bound=value, duals=duals, **nothing)
    assert verify(proof, X, y).holds
    proof = certificate("mmc", {"diagonal": False}, objective=0.0, bound=0.0, **nothing)
    assert "do not differ" in verify(proof, X, y).reason


def test_a_singular_metric_has_no_logdet_objective():
    duals = {
        "pairs": [[0, 1]],
        "similar": [True],
        "bounds": [1.0],
        "tightness": [0.9],
        "factor": np.eye(2),
    }
    proof = certificate(
        "itml",
        {"gamma": 1.0},
        components=np.diag([1.0, 0.0]),
        objective=1.0,
        bound=0.1,
        duals=duals,
    )
    assert "singular" in verify(proof, np.eye(2), [0, 0]).reason


@pytest.mark.parametrize("n_rows", [2, 3])
def test_few_rows(n_rows):
    """A class of one row has no targets; others still see it."""
    X, y = np.arange(2.0 * n_rows).reshape(n_rows, 2), [0] * (n_rows - 1) + [1]
    proof = certificate("mcml", {}, objective=0.0, bound=0.0, objective_error=10.0, gap=1.0)
    found = verify(proof, X, y)
    assert found.holds, found.reason
    assert np.isfinite(found.objective)
