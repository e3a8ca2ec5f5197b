"""``lnml info --verify``: the proof in a model, checked against the training table."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import proofs
import pytest

from lnml.cli import main
from lnml.models import Model, fit_model, load_model, save_model
from lnml.tables import Preparation, make_table

X, Y = proofs.data()
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
    name=[f"row {i}" for i in range(len(X))], kind=np.array(["x", "y", "z"])[Y]
)
TABLE = make_table(FRAME, "kind", name="data.csv", drop=["name"])


class Learner:
    """As much of an estimator as a model needs."""

    objective_, duality_gap_ = 1.0, 0.5

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        self.components_ = proofs.COMPONENTS
        self.certificate_ = proofs.lmnn(X, np.unique(y, return_inverse=True)[1])
        return self


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """A working directory with data.csv and proved.model; the model itself."""
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("data.csv", index=False)
    fitted = fit_model(TABLE, "lmnn", Learner(), Preparation(scale="standard"))
    save_model("proved.model", fitted)
    return fitted


def test_the_certificate_is_stored(model: Model) -> None:
    loaded = load_model("proved.model").certificate
    assert loaded is not None
    assert loaded.get_state()[0] == model.certificate.get_state()[0]
    for name, array in model.certificate.get_state()[1].items():
        np.testing.assert_array_equal(loaded.get_state()[1][name], array)


def test_a_proof_that_holds(model: Model, capsys: pytest.CaptureFixture) -> None:
    assert main("info proved.model --verify data.csv".split()) == 0
    out = capsys.readouterr().out
    assert "The proof holds." in out
    assert "no metric of any rank has a smaller LMNN objective" in out
    assert main("info proved.model --verify data.csv --json".split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["holds"] is True
    assert found["bound"] == pytest.approx(model.certificate.bound, rel=1e-9)
    assert main("info proved.model".split()) == 0
    assert "LMNN objective" in capsys.readouterr().out


def test_a_proof_that_does_not_hold(model: Model, capsys: pytest.CaptureFixture) -> None:
    false = replace(model.certificate, bound=1.01 * model.certificate.bound)
    save_model("false.model", replace(model, certificate=false))
    assert main("info false.model --verify data.csv".split()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("lnml: the proof does not hold: only the bound")
    wrong = replace(model.certificate, objective=2.0)
    save_model("false.model", replace(model, certificate=wrong))
    assert main("info false.model --verify data.csv --json".split()) == 1
    assert json.loads(capsys.readouterr().out)["bound"] is None


def test_mistakes(model: Model, capsys: pytest.CaptureFixture) -> None:
    FRAME.assign(a=FRAME["a"] + 1e-9).to_csv("other.csv", index=False)
    assert main("info proved.model --verify other.csv".split()) == 2
    assert "not the table that proved.model was fitted on (data.csv)" in capsys.readouterr().err
    save_model("bare.model", replace(model, certificate=None))
    assert load_model("bare.model").certificate is None
    assert main("info bare.model --verify data.csv".split()) == 2
    assert "NCA and the Euclidean metric have none" in capsys.readouterr().err
    assert main("info bare.model".split()) == 0


def test_a_certificate_of_another_metric_is_refused(
    model: Model, capsys: pytest.CaptureFixture
) -> None:
    other = replace(model.certificate, components=2.0 * model.components)
    save_model("mixed.model", replace(model, certificate=other))
    assert main("info mixed.model".split()) == 2
    assert "damaged" in capsys.readouterr().err
