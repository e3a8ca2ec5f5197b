"""Objectives and a dual value in 50 decimal digits: the stated errors are large enough."""

from decimal import Decimal, localcontext

import numpy as np
import proofs
import pytest

from lnml.certificates.logdet import itml_bound
from lnml.certificates.problem import Problem
from lnml.certificates.verify import FAMILIES

X, Y = proofs.data(n=15)
# Far from zero, so that differences lose digits.
FAR = X + 1e5


@pytest.fixture(autouse=True)
def digits():
    with localcontext() as context:
        context.prec = 50
        yield


def matrix(values):
    return [[Decimal(float(value)) for value in row] for row in values]


ROWS = matrix(FAR)
COMPONENTS = matrix(proofs.COMPONENTS)


def distance(i, j, L=COMPONENTS):
    v = [a - b for a, b in zip(ROWS[i], ROWS[j], strict=True)]
    return sum(sum(a * b for a, b in zip(row, v, strict=True)) ** 2 for row in L)


def determinant(rows):
    rows, product = [list(row) for row in rows], Decimal(1)
    for k in range(len(rows)):
        product *= rows[k][k]
        for row in rows[k + 1 :]:
            factor = row[k] / rows[k][k]
            row[:] = [a - factor * b for a, b in zip(row, rows[k], strict=True)]
    return product


def frobenius(certificate):
    C, n = Decimal(certificate.parameters["C"]), len(COMPONENTS)
    products = [
        sum(a * b for a, b in zip(COMPONENTS[i], COMPONENTS[j], strict=True))
        for i in range(n)
        for j in range(n)
    ]
    total = sum(product**2 for product in products) / 2
    for i, j in certificate.duals["targets"]:
        margins = (1 + distance(i, j) - distance(i, l) for l in np.flatnonzero(Y != Y[i]))
        total += C * sum(max(Decimal(0), margin) for margin in margins)
    return total


def mcml(certificate):
    total = Decimal(0)
    for i in range(len(FAR)):
        targets = [j for row, j in certificate.duals["targets"] if row == i]
        others = [j for j in range(len(FAR)) if j != i]
        total += sum(distance(i, j) for j in targets) / len(targets)
        total += sum((-distance(i, j)).exp() for j in others).ln() - Decimal(len(targets)).ln()
    return total


def mmc(certificate):
    n = len(FAR)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    similar = sum(distance(i, j) for i, j in pairs if Y[i] == Y[j])
    return similar / sum(distance(i, j).sqrt() for i, j in pairs if Y[i] != Y[j]) ** 2


def itml(certificate):
    duals, gamma = certificate.duals, Decimal(certificate.parameters["gamma"])
    total = sum(value**2 for row in COMPONENTS for value in row) - len(COMPONENTS)
    total -= 2 * abs(determinant(COMPONENTS)).ln()
    for (i, j), similar, bound in zip(
        duals["pairs"], duals["similar"], duals["bounds"], strict=True
    ):
        ratio = distance(i, j) / Decimal(float(bound))
        if (ratio > 1) == bool(similar):
            total += gamma * (ratio - ratio.ln() - 1)
    return total


def exactly(value):
    """A long double as the sum of two doubles."""
    high = float(value)
    return Decimal(high) + Decimal(float(value - high))


def problem_of(certificate):
    return Problem(certificate, FAR, Y)


@pytest.mark.parametrize("exact", [frobenius, mcml, mmc, itml])
def test_objectives_are_within_their_errors(exact):
    certificate = proofs.MAKERS[exact.__name__](FAR, Y)
    value, error, _ = FAMILIES[certificate.method][0](problem_of(certificate))
    assert 0 < error <= 1e-12 * value
    assert abs(exactly(value) - exact(certificate)) <= exactly(error)


def test_the_dual_value_of_itml_is_not_above_the_exact_one():
    certificate = proofs.itml(FAR, Y)
    duals, gamma = certificate.duals, Decimal(certificate.parameters["gamma"])
    A = [[Decimal(int(p == q)) for q in range(3)] for p in range(3)]
    value = Decimal(0)
    for (i, j), bound, tightness in zip(
        duals["pairs"], matrix([duals["bounds"]])[0], matrix([duals["tightness"]])[0], strict=True
    ):
        v = [a - b for a, b in zip(ROWS[i], ROWS[j], strict=True)]
        for p in range(3):
            for q in range(3):
                A[p][q] += gamma * (1 - tightness) / bound * v[p] * v[q]
        value += gamma * tightness.ln()
    value += determinant(A).ln()
    proved = exactly(itml_bound(problem_of(certificate)))
    assert value - Decimal("1e-12") <= proved <= value
