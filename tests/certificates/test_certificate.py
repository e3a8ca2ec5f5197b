"""Certificates as values and as files."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import proofs
import pytest

from lnml.certificates import Certificate, verify

X, Y = proofs.data()
LMNN = proofs.lmnn(X, Y)


@pytest.mark.parametrize("name", proofs.MAKERS)
def test_same_certificate_after_reload(tmp_path: Path, name):
    certificate = proofs.MAKERS[name](X, Y)
    path = tmp_path / "proof.npz"
    certificate.save(path)
    loaded = Certificate.load(path)
    assert repr(loaded) == repr(certificate)
    assert loaded.about == certificate.about
    assert loaded.get_state()[0] == certificate.get_state()[0]
    for name, array in certificate.get_state()[1].items():
        other = loaded.get_state()[1][name]
        assert (other.dtype, other.tobytes()) == (array.dtype, array.tobytes())
    assert verify(loaded, X, Y) == verify(certificate, X, Y)


def test_a_limit_is_kept(tmp_path: Path):
    certificate = replace(LMNN, slack=1e-9, limit=10.0)
    certificate.save(tmp_path / "proof")
    assert Certificate.load(tmp_path / "proof").limit == 10.0
    assert "trace up to 10" in certificate.about


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


def test_pickles_are_refused(tmp_path: Path):
    path = tmp_path / "proof.npz"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="not a certificate"):
        Certificate.load(path)
    with path.open("wb") as file:
        np.savez(file, certificate=np.array([Bomb()], dtype=object))
    with pytest.raises(ValueError, match="not a certificate"):
        Certificate.load(path)


def test_other_files_are_refused(tmp_path: Path):
    path = tmp_path / "proof.npz"
    LMNN.save(path)
    content = path.read_bytes()
    for damaged in (b"", b"text", content[:100], content[:-30]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="not a certificate"):
            Certificate.load(path)
    np.savez(path, X=X)
    with pytest.raises(ValueError, match="not a certificate"):
        Certificate.load(path)
    with pytest.raises(FileNotFoundError):
        Certificate.load(tmp_path / "nothing.npz")


DUALS = LMNN.duals
WRONG = {
    "method must be one of": {"method": "nca"},
    "parameters of lmnn": {"parameters": {"C": 1.0}},
    "push_weight must be above 0 and below 1": {"parameters": {"push_weight": 1.5}},
    "components has shape": {"components": np.ones(3)},
    "do not go with components": {"coordinates": np.eye(4)},
    "left_out=1": {"left_out": 1},
    "slack must be": {"slack": -1.0},
    "limit finite": {"slack": 1.0},
    "not finite": {"bound": np.nan},
    "must not be negative": {"objective_error": -1.0},
    "has no dual 'pairs'": {"duals": {**DUALS, "pairs": np.zeros((1, 2), dtype=int)}},
    "slopes has shape": {"duals": {**DUALS, "slopes": DUALS["slopes"][1:]}},
    "targets has shape": {"duals": {**DUALS, "targets": DUALS["targets"][:, :1]}},
    "triplets holds float64": {"duals": {**DUALS, "triplets": DUALS["triplets"] * 1.0}},
    "slopes holds numbers that": {
        "duals": {**DUALS, "slopes": np.full(DUALS["slopes"].shape, np.inf)}
    },
    "needs slopes": {"duals": {"targets": DUALS["targets"], "triplets": DUALS["triplets"]}},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_no_certificate_is_refused(message):
    with pytest.raises(ValueError, match=message):
        replace(LMNN, **WRONG[message])


def test_in_words():
    assert repr(LMNN).startswith("<Certificate of lmnn: objective 84.92")
    assert "no metric of any rank has a smaller LMNN objective than 2.38" in LMNN.about
    assert "target neighbours" in LMNN.about
    assert "diagonal metric" in proofs.mmc_diagonal(X, Y).about
    assert "classes" in proofs.mmc(X, Y).about
    assert "pairs and bounds" in proofs.itml(X, Y).about
