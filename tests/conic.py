"""Witnesses by a conic solver: metrics solved in residual columns and mapped back."""

import numpy as np
import sdp
from attained import column_maps
from oracles import triplets
from references import LONG, same_class

LEARNERS = ("LMNN", "LNML", "MCML", "MMC", "SupportVectorMetric")
# The programmes of more rows take seconds.
MOST_ROWS = 16


def conic_witnesses(learner, model, X, y):
    """Metrics that cvxpy finds in the columns of ``column_maps``, for the learners below."""
    found = []
    for name, matrix in column_maps(X).items():
        Z = np.asarray(X).astype(LONG) @ matrix
        Z = (Z - Z.mean(axis=0)).astype(float)
        try:
            M = _solved(learner, model, Z, np.asarray(y), matrix.astype(float))
        except (AssertionError, sdp.cp.SolverError):
            continue
        values, vectors = np.linalg.eigh(M)
        L = (np.sqrt(np.maximum(values, 0.0)) * vectors).T
        found.append((f"cvxpy in {name}", L.astype(LONG) @ matrix.T))
    return found


def _solved(learner, model, Z, y, matrix):
    if learner in ("LMNN", "LNML"):
        weight = (model.estimator_ if learner == "LNML" else model).push_weight
        return sdp.lmnn_solution(Z, y, model.target_neighbors_.toarray().astype(float), weight)[1]
    if learner == "MCML":
        return sdp.mcml_solution(Z, same_class(y).astype(float))[1]
    if learner == "SupportVectorMetric":
        i, j, l = triplets(model.target_neighbors_.toarray(), y)
        return sdp.frobenius_solution(Z[i] - Z[j], Z[i] - Z[l], model.C, matrix)[1]
    v = (Z[:, None] - Z).reshape(-1, Z.shape[1])
    similar, apart = same_class(y).ravel(), (y[:, None] != y).ravel()
    return sdp.mmc_solution(v[similar].T @ v[similar], v[apart])[1]
