"""LNMLCV against a grid search over LNML that shares no work between fits."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lnml import LMNN, LNML, LNMLCV, MCML, estimate_memory, least_trusted

GRID = [(3, 3, 3), (1, 3, 5)]

pytestmark = pytest.mark.sampled(2)


def blobs():
    """Three classes that overlap, in two features: fits take some hundredths of a second."""
    rng = np.random.default_rng(0)
    y = np.tile(["a", "b", "c"], 25)
    X = rng.standard_normal((75, 2))
    X[:, 0] += np.tile([0.0, 1.2, 2.4], 25)
    return X, y


def grid_search(base, grid, cv, scoring=None, n_neighbors=1):
    """The same search with scikit-learn's parts alone."""
    candidates = [
        {"lnml__k_min": [k_min], "lnml__k_av": [k_av], "lnml__k_max": [k_max]}
        for k_min, k_av, k_max in grid
    ]
    pipeline = make_pipeline(LNML(base), KNeighborsClassifier(n_neighbors))
    return GridSearchCV(pipeline, candidates, cv=cv, scoring=scoring)


@pytest.mark.parametrize(
    ("base", "grid"), [(LMNN(), GRID), (MCML(), [(3, 3, 3), (5, 5, 5)])], ids=["LMNN", "MCML"]
)
def test_scores_are_those_of_a_grid_search(base, grid):
    X, y = blobs()
    cv = StratifiedKFold(2, shuffle=True, random_state=1)
    ours = LNMLCV(base, grid=grid, cv=cv, cv_tol=1e-3).fit(X, y)
    theirs = grid_search(base, grid, cv).fit(X, y)
    for key in ("split0_test_score", "split1_test_score", "mean_test_score", "std_test_score"):
        assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], rtol=1e-12)
    assert_array_equal(ours.cv_results_["rank_test_score"], theirs.cv_results_["rank_test_score"])
    assert ours.best_index_ == theirs.best_index_
    assert_allclose(ours.best_score_, theirs.best_score_)


def test_warm_grid_finds_metrics_as_good():
    X, y = blobs()
    cold, warm = (LNMLCV(warm_grid=flag).fit(X, y).cv_results_ for flag in (False, True))
    assert warm["mean_test_score"][0] == cold["mean_test_score"][0]
    assert warm["mean_test_score"].mean() >= cold["mean_test_score"].mean() - 0.05


def test_refit_is_lnml_with_the_best_sizes():
    X, y = blobs()
    model = LNMLCV(grid=GRID).fit(X, y)
    assert model.best_params_ == dict(
        zip(("k_min", "k_av", "k_max"), GRID[model.best_index_], strict=True)
    )
    alone = LNML(**model.best_params_).fit(X, y)
    assert isinstance(model.best_estimator_, LNML)
    assert_array_equal(model.components_, alone.components_)
    assert_array_equal(model.target_neighbors_.toarray(), alone.target_neighbors_.toarray())
    assert_array_equal(model.n_target_neighbors_, alone.n_target_neighbors_)
    assert model.objective_ == alone.objective_
    assert model.converged_ and model.duality_gap_ <= 1e-3
    assert_array_equal(model.transform(X), alone.transform(X))
    assert_array_equal(model.classes_, np.unique(y))
    assert least_trusted(model, 5).shape == (5,)


def test_warm_refit_goes_on_from_the_first_fold():
    X, y = blobs()
    folds = list(StratifiedKFold(2).split(X, y))
    model = LNMLCV(grid=GRID[:1], cv=folds, cv_tol=1e-3, warm_grid=True).fit(X, y)
    train = folds[0][0]
    alone = LNML(warm_start=True).fit(X[train], y[train]).fit(X, y)
    assert_allclose(model.components_, alone.components_, rtol=1e-9, atol=1e-9)
    assert model.converged_ and model.duality_gap_ <= 1e-3
    assert model.best_estimator_.warm_start is False


def test_rounds_are_chosen_by_the_scores_after_every_round():
    X, y = blobs()
    cv = StratifiedKFold(3, shuffle=True, random_state=1)
    model = LNMLCV(grid=GRID, cv=cv, choose_rounds=True).fit(X, y)
    best = []
    for (k_min, k_av, k_max), curve in zip(
        GRID, model.cv_results_["mean_round_scores"], strict=True
    ):
        scores = np.full((3, len(curve)), np.nan)
        for number, (train, test) in enumerate(cv.split(X, y)):
            metrics = []
            LNML(
                k_min=k_min, k_av=k_av, k_max=k_max, tol=1e-2,
                callback=lambda state, metrics=metrics: metrics.append(state.components),
            ).fit(X[train], y[train])  # fmt: skip
            for at, L in enumerate(metrics):
                nearest = KNeighborsClassifier(1).fit(X[train] @ L.T, y[train])
                scores[number, at:] = nearest.score(X[test] @ L.T, y[test])
        assert_allclose(curve, scores.mean(axis=0), rtol=1e-12)
        best.append(curve.max())
        assert model.cv_results_["mean_test_score"][len(best) - 1] == best[-1]
    assert model.best_index_ == np.argmax(best)
    curve = model.cv_results_["mean_round_scores"][model.best_index_]
    chosen = model.best_params_["max_rounds"]
    assert chosen == np.argmax(curve) + 1 < len(curve)
    alone = LNML(**model.best_params_)
    with pytest.warns(ConvergenceWarning):
        alone.fit(X, y)
    assert_array_equal(model.components_, alone.components_)
    assert model.n_iter_ == chosen


def test_a_fit_that_ends_after_the_chosen_rounds_has_converged():
    X, y = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LNMLCV(grid=GRID, cv=3, random_state=1, choose_rounds=True).fit(X, y)
    assert model.best_params_["max_rounds"] < 100
    assert model.converged_ and not model.best_estimator_.converged_
    with pytest.warns(ConvergenceWarning, match="the metric of the last round"):
        model.set_params(estimator=LMNN(max_iter=1)).fit(X, y)
    assert not model.converged_


def test_all_rounds_where_the_last_is_best():
    X, y = blobs()
    X[:, 0] += 20 * np.tile([0.0, 1.0, 2.0], 25)
    rounds = LNMLCV(grid=GRID, choose_rounds=True).fit(X, y).best_params_["max_rounds"]
    assert rounds == 1  # all rounds classify all rows: the first of equals
    assert (
        LNMLCV(grid=GRID, choose_rounds=True, cv_rounds=1).fit(X, y).best_params_["max_rounds"]
        == 100
    )


def test_results_have_the_layout_of_scikit_learn():
    X, y = blobs()
    results = LNMLCV(grid=GRID, cv=3).fit(X, y).cv_results_
    reference = grid_search(LMNN(max_iter=5, tol=0.3), GRID[:1], 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = reference.fit(X, y).cv_results_
    assert set(results) == {key.replace("lnml__", "") for key in expected}
    assert results["params"] == [
        {"k_min": 3, "k_av": 3, "k_max": 3},
        {"k_min": 1, "k_av": 3, "k_max": 5},
    ]
    splits = np.array([results[f"split{fold}_test_score"] for fold in range(3)])
    assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    assert_allclose(results["std_test_score"], splits.std(axis=0))
    assert (results["mean_fit_time"] > 0).all()


def test_first_of_equal_candidates_is_chosen():
    X, y = blobs()
    model = LNMLCV(grid=GRID, scoring=lambda *_: 0.5).fit(X, y)
    assert model.best_index_ == 0
    assert_array_equal(model.cv_results_["rank_test_score"], 1)


@pytest.mark.parametrize(
    ("base", "n_candidates", "n_folds", "last"),
    [(LMNN(), 5, 2, (2, 3, 5)), (MCML(tol=0.1), 6, 5, (30, 30, 30))],
    ids=["LMNN", "MCML"],
)
def test_default_grid(base, n_candidates, n_folds, last):
    X, y = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LNMLCV(base, tol=0.1, max_rounds=2).fit(X, y)
    assert len(model.cv_results_["params"]) == n_candidates
    assert model.n_splits_ == n_folds
    assert tuple(model.cv_results_["params"][-1].values()) == last


def test_sizes_beyond_a_class_are_capped():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), np.repeat(["a", "b", "c"], [14, 12, 4])
    X[:, 0] += np.repeat([0.0, 2.0, 4.0], [14, 12, 4])
    with pytest.warns(UserWarning, match=r"c \(4 rows\)"):
        model = LNMLCV(grid=[(5, 5, 5)]).fit(X, y)
    assert_array_equal(model.n_target_neighbors_, np.repeat([5, 5, 3], [14, 12, 4]))


@pytest.mark.parametrize("scoring", ["balanced_accuracy", make_scorer(balanced_accuracy_score)])
def test_scoring_and_its_neighbors(scoring):
    X, y = blobs()
    cv = StratifiedKFold(2, shuffle=True, random_state=0)
    ours = LNMLCV(grid=GRID, scoring=scoring, scoring_neighbors=5, cv_tol=1e-3).fit(X, y)
    theirs = grid_search(LMNN(), GRID, cv, "balanced_accuracy", 5).fit(X, y)
    assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])


def test_folds_may_be_given_as_indices():
    X, y = blobs()
    folds = list(StratifiedKFold(2).split(X, y))
    model = LNMLCV(grid=GRID, cv=folds).fit(X, y)
    same = LNMLCV(grid=GRID, cv=StratifiedKFold(2)).fit(X, y)
    assert_array_equal(model.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"])


def test_processes_change_nothing():
    X, y = blobs()
    one, two = (LNMLCV(grid=GRID, n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 2))
    assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    assert_array_equal(one.components_, two.components_)


def test_in_a_pipeline_nested_and_pickled():
    X, y = blobs()
    model = LNMLCV(LMNN(push_weight=0.4), grid=GRID)
    pipeline = make_pipeline(StandardScaler(), model, KNeighborsClassifier(1))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.5
    copy = clone(model).set_params(estimator__push_weight=0.3)
    assert copy.estimator.push_weight == 0.3 and not hasattr(copy, "components_")
    fitted = pickle.loads(pickle.dumps(pipeline.fit(X, y)))
    assert_array_equal(fitted.predict(X), pipeline.predict(X))


def test_pandas_and_float32():
    pandas = pytest.importorskip("pandas")
    X, y = blobs()
    frame = pandas.DataFrame(X.astype(np.float32), columns=["length", "width"])
    model = LNMLCV(grid=GRID).set_output(transform="pandas").fit(frame, y)
    assert model.components_.dtype == np.float32
    assert list(model.feature_names_in_) == ["length", "width"]
    assert model.transform(frame).shape == (75, 2)


def test_verbose_shows_every_fit(capsys):
    LNMLCV(grid=GRID, verbose=1).fit(*blobs())
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "LNMLCV fold 1 sizes (1, 3, 5)" in shown.err
    assert shown.err.count("\n") == 5


def test_unfinished_fits_are_told():
    X, y = blobs()
    with pytest.warns(ConvergenceWarning, match="fits of the inner cross-validation"):
        LNMLCV(grid=[(1, 3, 5)], max_rounds=1).fit(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LNMLCV(grid=[]), "sequence of"),
        (LNMLCV(grid=3), "sequence of"),
        (LNMLCV(grid=[3]), "sequence of"),
        (LNMLCV(grid=[(1, 3)]), "sequence of"),
        (LNMLCV(grid=[(4, 3, 5)]), "k_min <= k_av <= k_max"),
        (LNMLCV(MCML(), grid=[(1, 3, 5)]), "MCML needs"),
        (LNMLCV(cv=1), "cv must be a whole number >= 2"),
        (LNMLCV(scoring="accurate"), "accurate"),
        (LNMLCV(scoring_neighbors=0), "scoring_neighbors must be"),
        (LNMLCV(scoring_neighbors=38), "37 rows"),
        (LNMLCV(tol=0), "tol must be"),
        (LNMLCV(max_rounds=0), "max_rounds must be"),
        (LNMLCV(cv_rounds=0), "cv_rounds must be"),
        (LNMLCV(cv_tol=2.0), "cv_tol must be"),
        (LNMLCV(cv=[(np.arange(0, 75, 3), np.arange(1, 75, 3))]), "fold 0 cannot be used"),
    ],
    ids=repr,
)
def test_bad_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*blobs())
    assert not hasattr(model, "n_splits_") and not hasattr(model, "cv_results_")


def test_base_that_cannot_be_coupled():
    with pytest.raises(TypeError, match="metric_problem"):
        LNMLCV(KNeighborsClassifier()).fit(*blobs())


def test_memory_is_that_of_the_last_fit():
    assert estimate_memory(LNMLCV(MCML()), 5000, 20) == estimate_memory(MCML(), 5000, 20)


@pytest.mark.parametrize(
    ("base", "grid", "n_folds"),
    [
        (LMNN(), [(3, 3, 3), (1, 3, 4), (1, 3, 5), (2, 3, 4), (2, 3, 5)], 2),
        (MCML(tol=0.5), [(k, k, k) for k in (3, 5, 7, 10, 20, 30)], 5),
    ],
    ids=["LMNN", "MCML"],
)
def test_every_candidate_of_the_default_grid(base, grid, n_folds):
    X, y = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LNMLCV(base, tol=0.5, max_rounds=1).fit(X, y)
    tried = [(p["k_min"], p["k_av"], p["k_max"]) for p in model.cv_results_["params"]]
    assert tried == grid
    assert model.n_splits_ == n_folds
    folds = [key for key in model.cv_results_ if key.startswith("split")]
    assert len(folds) == n_folds


def test_more_neighbors_vote_without_a_scoring_of_ones_own():
    X, y = blobs()
    cv = StratifiedKFold(2, shuffle=True, random_state=0)
    scores = {}
    for k in (1, 7):
        ours = LNMLCV(grid=GRID, scoring_neighbors=k, cv_tol=1e-3).fit(X, y).cv_results_
        theirs = grid_search(LMNN(), GRID, cv, n_neighbors=k).fit(X, y).cv_results_
        assert_allclose(ours["mean_test_score"], theirs["mean_test_score"])
        scores[k] = ours["mean_test_score"]
    assert (scores[1] != scores[7]).all()


@pytest.mark.filterwarnings("ignore:LNML stopped")
def test_a_large_tolerance_holds_for_the_inner_fits_too():
    """Three iterations meet tol=0.5 and never cv_tol=1e-9, of which a warning tells."""
    model = LNMLCV(LMNN(max_iter=3), grid=GRID[:1], tol=0.5, cv_tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(*blobs())
    with pytest.warns(ConvergenceWarning, match="fits of the inner cross-validation"):
        model.set_params(tol=1e-9).fit(*blobs())


@pytest.mark.filterwarnings("error")
def test_rounds_that_were_limited_on_purpose_are_no_news():
    model = LNMLCV(grid=[(1, 3, 5)], cv_rounds=1).fit(*blobs())
    assert model.converged_ and model.n_iter_ > 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callback_sees_folds_and_rounds(n_jobs):
    """In this process, also where the folds run in others."""
    states = []
    model = LNMLCV(grid=GRID, n_jobs=n_jobs, callback=states.append).fit(*blobs())
    folds, rounds = states[:2], states[2:]
    assert [state.record["fold"] for state in folds] == [0, 1]
    for number, state in enumerate(folds):
        assert_array_equal(state.record["scores"], model.cv_results_[f"split{number}_test_score"])
        assert state.components.shape == (2, 2)
    assert len(rounds) == model.n_iter_ == len(model.history_)


@pytest.mark.parametrize("answer", [True, np.True_])
def test_callback_may_end_the_search(answer, recwarn):
    model = LNMLCV(grid=GRID, cv=4, callback=lambda state: "fold" in state.record and answer)
    model.fit(*blobs())
    assert model.n_splits_ == 1
    assert model.converged_ and model.best_params_ in model.cv_results_["params"]
    first = LNMLCV(grid=GRID, cv=4).fit(*blobs()).cv_results_["split0_test_score"]
    assert_array_equal(model.cv_results_["mean_test_score"], first)
    assert not recwarn.list


@pytest.mark.parametrize("choose_rounds", [False, True])
def test_callback_may_end_the_final_fit(choose_rounds, recwarn):
    model = LNMLCV(
        LMNN(), grid=[(1, 3, 5)], choose_rounds=choose_rounds, tol=1e-9, cv_tol=0.1, max_rounds=9
    )
    model.set_params(callback=lambda state: "round" in state.record).fit(*blobs())
    assert model.n_splits_ == 2 and model.n_iter_ == 1
    assert model.converged_ is False
    assert not recwarn.list, "stopping on request is not a convergence failure"
