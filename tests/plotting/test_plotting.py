"""Pictures: what is drawn is what the results say."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.text import Text
from results import random_comparison
from sklearn.datasets import make_blobs

from lnml import LMNN, LNML, NCA, least_trusted, trace_path
from lnml.evaluation import accuracy_interval, column_weights, critical_difference
from lnml.plotting import (
    plot_accuracies,
    plot_column_pairs,
    plot_column_weights,
    plot_confusion,
    plot_convergence,
    plot_critical_difference,
    plot_embedding,
    plot_leaderboard,
    plot_neighbor_counts,
    plot_neighborhoods,
    plot_trace_path,
)

mpl.use("Agg")


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(60, n_features=4, centers=3, cluster_std=3.0, random_state=0)
    return X, np.array(["red", "_green", "b$l$ue"])[y]


@pytest.fixture(scope="module")
def model(blobs):
    return LNML(k_min=1, k_av=3, k_max=5).fit(*blobs)


def n_lines(ax):
    return sum(len(p.get_path().vertices) // 2 for p in ax.patches if isinstance(p, PathPatch))


def n_points(ax):
    return sum(len(line.get_xdata()) for line in ax.lines)


def test_accuracies_and_intervals(ax):
    found = random_comparison("toy", {"good": 0.9, "same": 0.9, "bad": 0.4})
    assert plot_accuracies(found, ax=ax) is ax
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["good", "same", "bad"]
    for height, method in enumerate(found.methods):
        interval, point = ax.lines[2 * height : 2 * height + 2]
        low, high = accuracy_interval(found.correct(method))
        np.testing.assert_allclose(interval.get_xdata(), [100 * low, 100 * high])
        assert point.get_xdata()[0] == pytest.approx(100 * found.accuracy(method))
    filled = [line.get_markerfacecolor() != "white" for line in ax.lines[1::2]]
    assert filled == [True, True, False]
    ax.figure.canvas.draw()


def test_classifiers_are_not_drawn(ax):
    found = random_comparison("toy", {"svm": 0.9, "good": 0.9}, classifiers=["svm"])
    plot_accuracies(found, ax=ax)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["good"]


def test_the_leaderboard_is_sorted_with_references_apart(ax):
    rates = {"bad": 0.4, "svm": 0.99, "same": 0.93, "good": 0.95}
    found = random_comparison("toy", rates, classifiers=["svm"])
    assert plot_leaderboard(found, ax=ax) is ax
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["good", "same", "bad", "svm"]
    assert ax.get_yticks().tolist() == [0, 1, 2, 3.5]
    points = [line for line in ax.lines if line.get_marker() == "o"]
    assert [point.get_markerfacecolor() != "white" for point in points] == [
        True,
        True,
        False,
        False,
    ]
    brackets = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) == 4]
    assert [(ends[0], ends[-1]) for ends in brackets] == [(-0.3, 1.3), (1.7, 2.3)]
    written = [text.get_text() for text in ax.texts]
    assert f"{100 * found.accuracy('good'):.1f}" in written
    assert written.count("1.00 s") == 4 and written.count("12 MB") == 4


def test_columns_and_pairs(ax):
    rng = np.random.default_rng(0)
    weights = column_weights(rng.normal(size=(2, 4)), rng.normal(size=(9, 4)), list("abcd"))
    plot_column_weights(weights, ax=ax)
    before, after = (next(line for line in ax.lines if line.get_gid() == g) for g in TIMES)
    np.testing.assert_allclose(before.get_xdata(), 100 * weights.before)
    np.testing.assert_allclose(after.get_xdata(), 100 * weights.after)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(weights.names)
    pairs = plot_column_pairs(weights, most=3, ax=Figure().add_subplot())
    assert len(pairs.patches) == 9
    for cell in pairs.patches:
        _, row, column = cell.get_gid().split("-")
        blue = cell.get_facecolor()[2] > cell.get_facecolor()[0]
        assert blue == (weights.pairs[int(row), int(column)] >= 0)


TIMES = ("before", "after")


def test_confusion(ax):
    plot_confusion(np.array([[5, 1], [0, 7]]), ["a", "b"], ax=ax)
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written == {(0, 0): "5", (1, 0): "1", (1, 1): "7"}
    with pytest.raises(ValueError, match="3 labels"):
        plot_confusion(np.eye(2), ["a", "b", "c"], ax=ax)


def test_texts_of_rings_do_not_overlap(ax):
    """Twelve rings within a few points of each other."""
    points = np.random.default_rng(0).normal(scale=0.02, size=(40, 2))
    points[-1] = 5.0
    rings = {i: str(1000 + i) for i in range(12)}
    plot_embedding(points, np.repeat("a", 40), np.empty((0, 2), dtype=int), rings=rings, ax=ax)
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    boxes = []
    for text in ax.texts:
        text.update_positions(renderer)
        # That of the text alone, without the line that leads to it.
        boxes.append(Text.get_window_extent(text, renderer))
    assert len(boxes) == 12
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_time_begins_at_zero(ax):
    plot_convergence(
        [{"seconds": 3.0, "objective": 2.0}, {"seconds": 4.0, "objective": 1.0}], ax=ax
    )
    assert ax.get_xlim()[0] == 0


def test_critical_difference_names_all_methods(ax):
    pytest.importorskip("scikit_posthocs")
    found = critical_difference([[0.9, 0.8, 0.5, 0.4]] * 9, ["a", "b", "c$x$", "d"])
    assert plot_critical_difference(found, ax=ax) is ax
    written = " ".join(text.get_text() for text in ax.texts)
    for name, rank in zip(
        ["a", "b", "c\\$x\\$", "d"], ["1.00", "2.00", "3.00", "4.00"], strict=True
    ):
        assert name in written and rank in written
    ax.figure.canvas.draw()


def test_convergence_of_models_and_records(ax, model, blobs):
    assert plot_convergence(model, ax=ax) is ax
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [r["objective"] for r in model.history_])
    records = [
        {"seconds": 0.1, "objective": 5.0, "bound": None},
        {"seconds": 0.2, "objective": 4.0, "bound": -1e6},
        {"seconds": 0.3, "objective": 3.0, "bound": 2.9},
    ]
    second = plot_convergence(records, ax=Figure().add_subplot())
    np.testing.assert_allclose(second.lines[1].get_ydata(), [-1e6, 2.9])
    assert second.get_ylim()[0] > -10, "a bound far below must not flatten the objective"
    plot_convergence(NCA().fit(*blobs), ax=Figure().add_subplot())
    wide = [{"seconds": s, "objective": 10.0**-s} for s in range(5)]
    assert plot_convergence(wide, ax=Figure().add_subplot()).get_yscale() == "log"


def test_convergence_refuses_what_was_not_fitted():
    for nothing in ([], LNML()):
        with pytest.raises(ValueError, match="fitted model with history_"):
            plot_convergence(nothing)


def test_a_path_shows_its_best_penalty(ax, blobs):
    X, y = blobs
    path = trace_path(LMNN(tol=0.1), X, y, trace_penalties=[0.0, 0.1, 1.0])
    assert plot_trace_path(path, [0.5, 0.9, 0.7], ax=ax) is ax
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [1.0, 0.1, 0.0])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [50.0, 90.0, 70.0])
    assert [text.get_text() for text in ax.texts] == ["90.0 % at 0.1"]
    ax.figure.canvas.draw()
    with pytest.raises(ValueError, match="one accuracy for each"):
        plot_trace_path(path, [0.5], ax=ax)


def test_neighborhoods_of_a_model(ax, model, blobs):
    assert plot_neighborhoods(model, *blobs, ax=ax) is ax
    assert n_lines(ax) == model.target_neighbors_.nnz
    assert n_points(ax) == 60
    names = {text.get_text() for text in ax.get_legend().get_texts()}
    assert names == {"red", "_green", r"b\$l\$ue"}
    ax.figure.canvas.draw()


def test_suspects_are_ringed_and_named(ax, model, blobs):
    plot_neighborhoods(model, *blobs, n_suspects=4, legend=False, ax=ax)
    assert n_points(ax) == 64
    assert {text.get_text() for text in ax.texts} == {str(row) for row in least_trusted(model, 4)}
    assert ax.get_legend() is None


def test_euclidean_metric_and_models_without_targets(ax, blobs):
    X, y = blobs
    plot_neighborhoods(None, X, y, n_neighbors=2, ax=ax)
    assert n_lines(ax) == 120
    points = np.concatenate([line.get_xydata() for line in ax.lines])
    centred = X - X.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred)[::-1][:2]
    np.testing.assert_allclose((points**2).sum(axis=0), values)
    other = Figure().add_subplot()
    assert n_lines(plot_neighborhoods(NCA().fit(X, y), X, y, ax=other)) == 180


def test_lines_go_to_the_nearest_of_the_class(ax):
    X = np.array([[0.0], [1.0], [3.0], [10.0], [10.5], [50.0]])
    plot_neighborhoods(None, X, list("aaabbc"), n_neighbors=1, ax=ax)
    drawn = [p.get_path().vertices.reshape(-1, 2, 2)[:, :, 0] for p in ax.patches]
    lengths = np.concatenate([np.abs(ends[:, 0] - ends[:, 1]) for ends in drawn])
    np.testing.assert_allclose(lengths, [1, 1, 2, 0.5, 0.5])


def test_rows_that_were_not_fitted_are_refused(model, blobs):
    with pytest.raises(ValueError, match="10 rows, the model's target neighbours 60"):
        plot_neighborhoods(model, blobs[0][:10], blobs[1][:10])


def test_many_classes_look_different(ax):
    labels = np.arange(40)
    plot_embedding(
        np.random.default_rng(0).normal(size=(40, 2)), labels, np.empty((0, 2), int), ax=ax
    )
    looks = {(line.get_color(), line.get_marker()) for line in ax.lines}
    assert len(looks) == 40
    ax.figure.canvas.draw()


def test_neighbor_counts(ax, model, blobs):
    assert plot_neighbor_counts(model, blobs[1], ax=ax) is ax
    totals = {}
    for bar in ax.patches:
        totals[bar.get_y()] = totals.get(bar.get_y(), 0) + bar.get_width()
    np.testing.assert_allclose(list(totals.values()), 100)
    ax = plot_neighbor_counts({"x": [0, 5, 5], "y": [10]}, ax=Figure().add_subplot())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]
    assert [bar.get_width() for bar in ax.patches] == [0, 100, 50, 0, 50, 0]
    with pytest.raises(TypeError, match="dict of label to counts"):
        plot_neighbor_counts(model)


def test_without_axes_a_figure_is_made(model, blobs):
    from matplotlib import pyplot

    figure = plot_neighborhoods(model, *blobs).figure
    assert pyplot.fignum_exists(figure.number)
    pyplot.close(figure)


def test_without_matplotlib_the_cure_is_named():
    code = "import sys; sys.modules['matplotlib'] = None; import lnml.plotting"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: lnml.plotting needs matplotlib" in found.stderr
    assert "pip install 'lnml[plot]'" in found.stderr
