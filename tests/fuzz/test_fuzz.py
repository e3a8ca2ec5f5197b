"""A few hundred inputs in this process; ``make fuzz`` tries thousands, under limits."""

import os
import random
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fuzz.drawn import inputs
from fuzz.mutations import mutated
from fuzz.originals import originals
from fuzz.trial import prepare, trial

KINDS = sorted({original.kind for original in originals()})
MUTATED = 20


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with good tables and models, where inputs go."""
    before = Path.cwd()
    folder = tmp_path_factory.mktemp("fuzz")
    with warnings.catch_warnings():
        prepare(folder)
    os.chdir(before)
    return folder


@pytest.fixture(autouse=True)
def inside(prepared, monkeypatch):
    monkeypatch.chdir(prepared)


def check(outcomes):
    for outcome in outcomes:
        assert not outcome.wrong, outcome


def test_good_files_are_read():
    for original in originals():
        read, _ = trial(original, random.Random(0))
        assert read.verdict == "done", (original.kind, original.extension, read)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(kind):
    good = [original for original in originals() if original.kind == kind]
    for number in range(MUTATED):
        # Others than those of ``make fuzz``, which has numbers as seeds.
        chance = random.Random(f"short {kind} {number}")
        check(trial(mutated(chance.choice(good), chance), chance))


@settings(
    max_examples=100,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(inputs)
def test_drawn_inputs(given):
    check(trial(given, random.Random(len(given.content))))
