"""Every method by name: what the command line, comparisons, tests and tables of methods read.

A metric learner of this library is one line of ``LEARNERS``. One from outside registers a
:class:`Method` as an entry point (docs/contract.md). Nothing slow is imported before it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from lnml.core.warn import warn_user
from lnml.errors import InputError, unknown_name

GROUP = "lnml.methods"


class Work(Enum):
    """What a fit keeps in memory besides copies of the data (docs/performance.md)."""

    DATA = "nothing else"
    CANDIDATES = "a working set of impostors"
    MIXED_CANDIDATES = "the same, and slopes at several metrics"
    SOFTMAX = "sums over all pairs of rows, streamed"
    CLASS_SOFTMAX = "the same, and coordinates of all rows for each group of them"
    ROOTS = "sums over all pairs of rows in float64, streamed"
    CONSTRAINTS = "a number of pairs that does not depend on the rows"


@dataclass(frozen=True)
class Method:
    """One method.

    Attributes
    ----------
    key : str
        Name on the command line.
    name : str
        As tables show it.
    summary : str
        One line for a list of methods.
    make : callable
        Gives an unfitted estimator for a seed; None for the Euclidean metric.
    scale : str or None
        How columns of numbers are scaled for it, as in ``--scale``; None leaves that to the
        user. The estimator itself does not scale.
    classifier : bool
        True if it gives no distance: it can be compared, for reference only.
    """

    key: str
    name: str
    summary: str
    make: Callable[[int], Any]
    scale: str | None = None
    classifier: bool = False


@dataclass(frozen=True)
class Learner:
    """A metric learner of this library.

    Attributes
    ----------
    key : str
        Name of the method on the command line.
    class_name : str
        Name of the estimator in ``lnml``.
    module : str
        Its module in ``lnml.estimators``.
    summary : str
        One line for a list of methods.
    page : str
        Its page in ``docs/``.
    work : Work
        What its fits keep in memory.
    proof : str
        What a fit proves.
    name : str
        As tables show it; by default the name of the class.
    seeded : bool
        Whether fits draw random numbers by default.
    """

    key: str
    class_name: str
    module: str
    summary: str
    page: str
    work: Work
    proof: str
    name: str = ""
    seeded: bool = False

    @property
    def estimator_class(self) -> type:
        """The class, imported."""
        return getattr(import_module(f"lnml.estimators.{self.module}"), self.class_name)

    def make(self, seed: int = 0) -> Any:
        """Return an unfitted estimator with default parameters."""
        return self.estimator_class(**({"random_state": seed} if self.seeded else {}))

    def method(self) -> Method:
        """Return the learner on its own, as a method to compare."""
        return Method(self.key, self.name or self.class_name, self.summary, self.make)


LEARNERS = (
    Learner(
        "mcml",
        "MCML",
        "mcml",
        "maximally collapsing metric learning",
        "mcml.md",
        Work.SOFTMAX,
        "duality gap, where a bound can be proved",
    ),
    Learner(
        "lmnn",
        "LMNN",
        "lmnn",
        "large margin nearest neighbours",
        "lmnn.md",
        Work.MIXED_CANDIDATES,
        "duality gap",
    ),
    Learner(
        "nca",
        "NCA",
        "nca",
        "neighbourhood components analysis",
        "nca.md",
        Work.CLASS_SOFTMAX,
        "nothing: the problem is not convex",
    ),
    Learner(
        "itml",
        "ITML",
        "itml",
        "information-theoretic metric learning",
        "itml.md",
        Work.CONSTRAINTS,
        "duality gap",
        seeded=True,
    ),
    Learner(
        "mmc", "MMC", "mmc", "Xing et al., full or diagonal", "mmc.md", Work.ROOTS, "duality gap"
    ),
    Learner(
        "support-vector",
        "SupportVectorMetric",
        "support_vector",
        "Nguyen & Guo",
        "frobenius.md",
        Work.CANDIDATES,
        "duality gap",
        name="SupportVector",
    ),
    Learner(
        "relative",
        "RelativeComparisons",
        "relative_comparisons",
        "Schultz & Joachims, weights of features or of given directions",
        "frobenius.md",
        Work.CANDIDATES,
        "duality gap",
    ),
)

# In the order of the paper's Table 2.
PAPER_METHODS = ("mcml", "ln-mcml", "lmnn", "ln-lmnn", "ln-lmnn-cv", "euclidean", "nca", "itml")

# What ``lnml fit`` learns if it is not told.
DEFAULT_METHOD = "auto"

# The paper chooses ITML's slack from these by two-fold cross-validation.
ITML_SLACKS = tuple(10.0**i for i in range(-4, 5))
# Candidates are compared after so many sweeps; the chosen one is solved in full (docs/itml.md).
ITML_CANDIDATE_ITERATIONS = 10


def _learned_neighborhoods(base: str) -> Any:
    from lnml.estimators.lnml import LNML

    return LNML(learner(base).make())


def _chosen_sizes(base: str, seed: int, **parameters: Any) -> Any:
    from lnml.estimators.lnml_cv import LNMLCV

    return LNMLCV(learner(base).make(), random_state=seed, **parameters)


def _chosen_slack(seed: int) -> Any:
    from lnml.estimators.tuned import TunedMetric

    return TunedMetric(
        learner("itml").make(seed),
        {"gamma": ITML_SLACKS},
        random_state=seed,
        candidate_params={"max_iter": ITML_CANDIDATE_ITERATIONS},
    )


def _chosen_with_care(seed: int) -> Any:
    from lnml.estimators.auto import AutoMetric

    return AutoMetric(random_state=seed)


def _classifier(maker: str, seed: int) -> Any:
    return getattr(import_module("lnml.estimators.classifiers"), maker)(seed)


COMPOSED = (
    Method("euclidean", "Euclidean", "no learning", lambda _: None),
    Method(
        "euclidean-scaled",
        "Euclidean (scaled)",
        "no learning, on columns of mean 0 and variance 1",
        lambda _: None,
        scale="standard",
    ),
    Method(
        "auto",
        "AutoMetric",
        "learned, averaged and chosen with care, on scaled columns; the one to start with",
        _chosen_with_care,
        scale="standard",
    ),
    Method(
        "ln-mcml",
        "LN-MCML",
        "MCML with learned neighbourhoods, 3 each",
        lambda _: _learned_neighborhoods("mcml"),
    ),
    Method(
        "ln-lmnn",
        "LN-LMNN",
        "LMNN with learned neighbourhoods, 3 each",
        lambda _: _learned_neighborhoods("lmnn"),
    ),
    Method(
        "ln-lmnn-cv",
        "LN-LMNN (CV)",
        "the same, sizes chosen by cross-validation",
        lambda seed: _chosen_sizes("lmnn", seed),
    ),
    Method(
        "itml",
        "ITML",
        "information-theoretic metric learning, slack chosen by cross-validation",
        _chosen_slack,
    ),
    Method(
        "ln-lmnn-cv-rounds",
        "LN-LMNN (CV, rounds)",
        "LN-LMNN, sizes and number of rounds chosen by cross-validation",
        lambda seed: _chosen_sizes("lmnn", seed, choose_rounds=True),
    ),
    Method(
        "ln-mcml-cv",
        "LN-MCML (CV)",
        "LN-MCML, number of neighbours chosen by cross-validation",
        lambda seed: _chosen_sizes("mcml", seed),
    ),
)

# What people often take instead of a distance: key, name, summary, maker and scale.
CLASSIFIERS = tuple(
    Method(key, name, summary, partial(_classifier, maker), scale, classifier=True)
    for key, name, summary, maker, scale in (
        ("svm", "SVM (RBF)", "C and gamma chosen by cross-validation", "tuned_svm", "standard"),
        ("forest", "Random forest", "500 trees", "random_forest", None),
        ("boosting", "Gradient boosting", "trees, stopped early", "StoppedBoosting", None),
    )
)


def learner(key: str) -> Learner:
    """Return the learner of this library with a key."""
    return next(entry for entry in LEARNERS if entry.key == key)


@cache
def built_in() -> dict[str, Method]:
    """Return the methods of this library by key: the paper's first, classifiers last."""
    learners = {entry.key: entry.method() for entry in LEARNERS}
    known = learners | {method.key: method for method in (*COMPOSED, *CLASSIFIERS)}
    order = (*PAPER_METHODS, *(m.key for m in COMPOSED), *learners, *known)
    return {key: known[key] for key in dict.fromkeys(order)}


def compared_by_default(scale: str) -> tuple[str, ...]:
    """Return the methods that are compared if none is named.

    They are the paper's, scaling alone, and the one to start with.

    Examples
    --------
    >>> compared_by_default("none")[5:7], compared_by_default("standard")[5:]
    (('euclidean', 'euclidean-scaled'), ('euclidean', 'nca', 'itml', 'auto'))
    """
    # With that scale both Euclidean metrics would be the same.
    extra = () if scale == find_method("euclidean-scaled").scale else ("euclidean-scaled",)
    after = PAPER_METHODS.index("euclidean") + 1
    return (*PAPER_METHODS[:after], *extra, *PAPER_METHODS[after:], DEFAULT_METHOD)


@cache
def _from_outside() -> dict[str, EntryPoint]:
    """Return entry points of other packages by key; a name of ours stays ours."""
    found = {}
    for point in entry_points(group=GROUP):
        if point.name in built_in():
            warn_user(
                f"the method {point.name!r} of {point.value} is ignored: lnml has one of that "
                f"name; it must register under another"
            )
        else:
            found[point.name] = point
    return found


def method_names() -> tuple[str, ...]:
    """Return the keys of all methods, those of other packages last; nothing is loaded."""
    return (*built_in(), *_from_outside())


def find_method(key: str) -> Method:
    """Return a method by its key, or say that there is none."""
    if key in built_in():
        return built_in()[key]
    if key not in _from_outside():
        raise unknown_name("method", key, method_names())
    point = _from_outside()[key]
    try:
        method = point.load()
    except Exception as error:
        raise InputError(
            f"the method {key!r} cannot be loaded from {point.value} "
            f"({type(error).__name__}: {error}): repair or remove that package"
        ) from error
    if not isinstance(method, Method) or method.key != key:
        raise InputError(
            f"the method {key!r} cannot be used: {point.value} must be a "
            f"lnml.registry.Method with that key; got {method!r}"
        )
    return method


def check_methods(keys: Iterable[str]) -> list[str]:
    """Return the keys of known methods, each once, or say which is unknown."""
    keys = list(dict.fromkeys(keys))
    known = method_names()
    for key in keys:
        if key not in known:
            raise unknown_name("method", key, known)
    if not keys:
        raise ValueError(f"no method to compare: name some of {', '.join(known)}")
    return keys


def methods_by_name(keys: Iterable[str], seed: int, device: str | None = None) -> dict[str, Any]:
    """Return unfitted estimators by display name; None for the Euclidean metric.

    They expect columns that are scaled as their ``Method.scale`` says.
    """
    found = [find_method(key) for key in check_methods(keys)]
    by_name: dict[str, Method] = {}
    for method in found:
        if method.name in by_name:
            raise InputError(
                f"the methods {by_name[method.name].key!r} and {method.key!r} are both called "
                f"{method.name!r} in tables: leave one out"
            )
        by_name[method.name] = method
    return {method.name: on_device(method.make(seed), device) for method in found}


def on_device(estimator: Any, device: str | None) -> Any:
    """Let an estimator, and those within it, fit on a device; None leaves it as it is.

    Examples
    --------
    >>> from lnml import LMNN, LNML
    >>> on_device(LNML(LMNN()), "cuda").device
    'cuda'
    """
    if estimator is not None and device is not None:
        names = [name for name in estimator.get_params() if name.split("__")[-1] == "device"]
        estimator.set_params(**dict.fromkeys(names, device))
    return estimator
