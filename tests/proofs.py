"""Valid certificates of small problems, written in double straight from the formulas."""

import numpy as np
import oracles
from scipy.linalg import eigh
from scipy.optimize import minimize

from lnml.certificates import Certificate

COMPONENTS = np.array([[0.9, 0.1, 0.0], [-0.2, 0.6, 0.1], [0.0, 0.3, 0.8]])


def data(seed=0, n=24, n_classes=3):
    """Rows far from zero, of overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    return 7.0 + rng.standard_normal((n, 3)) + y[:, None] * [1.5, 0.0, 0.7], y


def whitened(S):
    """W with W^T S W = I."""
    values, vectors = np.linalg.eigh(S)
    return vectors / np.sqrt(values)


def hinges(X, y, k=2, seed=0):
    """Targets, all triplets, random slopes a, and sum_t a_t (v_ij v_ij^T - v_il v_il^T)."""
    P = oracles.nearest_targets(oracles.squared_distances(X), y, k)
    targets = np.argwhere(P)
    i, j, l = oracles.triplets(P, y)
    index = {tuple(pair): place for place, pair in enumerate(targets)}
    which = np.array([index[pair] for pair in zip(i, j, strict=True)])
    slopes = np.random.default_rng(seed).random(which.size)
    near, far = X[i] - X[j], X[i] - X[l]
    scatter = (near * slopes[:, None]).T @ near - (far * slopes[:, None]).T @ far
    return P, targets, np.column_stack([which, l]), slopes, scatter


def finished(method, parameters, objective, bound, coordinates, duals, **others):
    """A certificate that states what double can know."""
    made = {
        "method": method,
        "parameters": parameters,
        "components": COMPONENTS,
        "objective": objective,
        "objective_error": 1e-12 * abs(objective),
        "bound": bound,
        "gap": (objective - bound) / objective * (1 + 1e-9),
        "coordinates": coordinates,
        "left_out": 0,
        "duals": duals,
        **others,
    }
    return Certificate(**made)


def lmnn(X, y, mu=0.4):
    P, targets, triplets, slopes, scatter = hinges(X, y)
    S = oracles.pull_scatter(X, P)
    least = eigh((1 - mu) * S + mu * scatter, S, eigvals_only=True)[0]
    slopes = slopes * (1 - mu) / (1 - mu + max(0.0, -least)) * (1 - 1e-9)
    return finished(
        "lmnn",
        {"push_weight": mu},
        oracles.lmnn_objective(X, y, P, COMPONENTS, mu),
        mu * slopes.sum(),
        whitened(S),
        {"targets": targets, "triplets": triplets, "slopes": slopes},
    )


def _frobenius_objective(X, y, P, C):
    pull = (P * oracles.squared_distances(X, COMPONENTS)).sum()
    push = 2 * oracles.lmnn_objective(X, y, P, COMPONENTS, 0.5) - pull
    return 0.5 * ((COMPONENTS @ COMPONENTS.T) ** 2).sum() + C * push


def frobenius(X, y, C=0.1):
    P, targets, triplets, slopes, scatter = hinges(X, y)
    values, vectors = np.linalg.eigh(-C * scatter)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    share = min(1.0, C * slopes.sum() / (positive**2).sum())
    positive = share * (positive + positive.T) / 2 + 1e-10 * share * values[-1] * np.eye(3)
    slopes = share * slopes
    return finished(
        "frobenius",
        {"C": C},
        _frobenius_objective(X, y, P, C),
        C * slopes.sum() - 0.5 * (positive**2).sum(),
        np.diag([0.5, 1.0, 2.0]),
        {"targets": targets, "triplets": triplets, "slopes": slopes, "dominator": positive},
    )


def weighted_basis(X, y, C=0.1):
    P, targets, triplets, slopes, scatter = hinges(X, y)
    basis = np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, -1.0], [0.0, 0.0, 1.0, 0.5]])
    gains = -C * np.einsum("pk,pq,qk->k", basis, scatter, basis)
    weights = np.maximum(gains, 0.0) / (basis**2).sum(axis=0) ** 2
    Q = (basis.T @ basis) ** 2
    assert (Q @ weights >= gains - 1e-9).all()
    share = min(1.0, C * slopes.sum() / (weights @ Q @ weights))
    weights, slopes = share * weights * (1 + 1e-10), share * slopes
    return finished(
        "weighted_basis",
        {"C": C},
        _frobenius_objective(X, y, P, C),
        C * slopes.sum() - 0.5 * weights @ Q @ weights,
        np.eye(3),
        {
            "targets": targets,
            "triplets": triplets,
            "slopes": slopes,
            "basis": basis,
            "weights": weights,
        },
    )


def mcml(X, y, barrier=0.3):
    P = oracles.nearest_targets(oracles.squared_distances(X), y, 2)

    def penalised(flat):
        L = flat.reshape(3, 3)
        return oracles.mcml_objective(X, P, L) - 2 * barrier * np.linalg.slogdet(L)[1]

    dual = minimize(penalised, np.eye(3).ravel()).x.reshape(3, 3)
    q = oracles.neighbor_probabilities(oracles.squared_distances(X, dual))
    other = oracles.neighbor_probabilities(oracles.squared_distances(X, 1.01 * dual))
    q = 0.9 * q + 0.1 * other
    bound = (-(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=1) - np.log(2.0)).sum()
    return finished(
        "mcml",
        {},
        oracles.mcml_objective(X, P, COMPONENTS),
        bound * (1 - 1e-13),
        whitened(oracles.pull_scatter(X, P / 2)),
        {
            "targets": np.argwhere(P),
            "dual_shares": np.array([0.9, 0.1]),
            "dual_components": np.stack([dual, 1.01 * dual]),
        },
    )


def mmc(X, y, diagonal=False):
    P = oracles.same_class(y).astype(float)
    S = oracles.pull_scatter(X, P)
    W = np.diag(1 / np.sqrt(np.diag(S))) if diagonal else whitened(S)
    roots = np.sqrt(oracles.squared_distances(X, COMPONENTS))
    other = oracles.other_class(y)
    T = oracles.pull_scatter(X, np.where(other, 0.5 / np.where(other, roots, 1.0), 0.0))
    if diagonal:
        highest = (np.diag(T) / np.diag(S)).max()
    else:
        highest = eigh(T, S, eigvals_only=True)[-1]
    return finished(
        "mmc",
        {"diagonal": diagonal},
        oracles.mmc_ratio(X, y, P, COMPONENTS),
        1 / (2 * roots[other].sum() * highest) * (1 - 1e-13),
        W,
        {"dual_components": COMPONENTS},
    )


def mmc_diagonal(X, y):
    return mmc(X, y, diagonal=True)


def itml(X, y, gamma=0.7):
    rng = np.random.default_rng(1)
    pairs = rng.permutation(np.argwhere(~np.eye(len(X), dtype=bool)))[:40]
    similar = y[pairs[:, 0]] == y[pairs[:, 1]]
    bounds = np.where(similar, 2.0, 6.0)
    vectors = X[pairs[:, 0]] - X[pairs[:, 1]]
    w = vectors / np.sqrt(bounds)[:, None]
    tightness = np.ones(len(pairs))

    def dual_matrix():
        return np.eye(3) + gamma * (w * (1 - tightness)[:, None]).T @ w

    for place in list(range(len(pairs))) * 5:
        q = w[place] @ np.linalg.inv(dual_matrix()) @ w[place]
        found = (1 / q + gamma * tightness[place]) / (1 + gamma)
        tightness[place] = min(found, 1.0) if similar[place] else max(found, 1.0)
    bound = np.linalg.slogdet(dual_matrix())[1] + gamma * np.log(tightness).sum()
    M = COMPONENTS.T @ COMPONENTS
    return finished(
        "itml",
        {"gamma": gamma},
        oracles.itml_objective(M, vectors, similar, bounds, gamma),
        bound * (1 - 1e-13),
        np.eye(3),
        {
            "pairs": pairs,
            "similar": similar,
            "bounds": bounds,
            "tightness": tightness,
            "factor": np.linalg.inv(np.linalg.cholesky(dual_matrix())),
        },
    )


MAKERS = {
    made.__name__: made for made in (lmnn, frobenius, weighted_basis, mcml, mmc, mmc_diagonal, itml)
}
