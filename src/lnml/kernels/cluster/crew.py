"""The workers of a cluster, and how tasks reach them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from typing import Any

from sklearn import get_config

from lnml.kernels.cluster.blocks import part_of, plus
from lnml.kernels.cluster.cells import CellTask, run_cells
from lnml.kernels.cluster.dealing import dealt_out
from lnml.kernels.cluster.layout import Cell, Layout

# How often a wait looks whether there is still a cluster, and how long it may have no workers.
POLL_SECONDS = 2.0
PATIENCE_SECONDS = 30.0
# Matrices of all workers together that the client may receive at once.
SMALL_BYTES = 2**23
# How many waits for results there are from one time that the scheduler is told to forget messages
# to the next. It takes some milliseconds.
WAITS_BETWEEN = 16

NO_CLIENT = (
    "X is a Dask array, and no cluster is connected. Start one first, for example with\n"
    "    from dask.distributed import Client\n"
    "    client = Client()\n"
    "or give NumPy arrays: X.compute(), if they fit into memory"
)


def current_client() -> Any:
    """Return the client of this process, or say how to start one."""
    try:
        from distributed import get_client
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "fits on a cluster need dask and distributed: pip install 'lnml[dask]'", name=error.name
        ) from error
    try:
        return get_client()
    except ValueError:
        raise ValueError(NO_CLIENT) from None


@contextmanager
def outside_of_tasks() -> Iterator[None]:
    """Leave the thread of a task to others, if this runs in one: they wait for it otherwise."""
    from distributed import get_worker, rejoin, secede
    from distributed.threadpoolexecutor import thread_state

    try:
        get_worker()
    except ValueError:
        yield
        return
    if not getattr(thread_state, "proceed", False):
        # As inside of worker_client().
        yield
        return
    secede()
    try:
        yield
    finally:
        rejoin()


class ClusterLost(RuntimeError):
    """The scheduler, or all workers, are gone."""


class Crew:
    """Hands cells out to workers and collects what they return.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.of_cell: dict[Cell, str] = {}
        self._assigned: Any = None
        self._copies: dict[tuple[str, str], Any] = {}
        self._waits = 0

    def workers(self) -> dict[str, int]:
        """Addresses of the workers that are there now, and their threads."""
        try:
            # Not scheduler_info: another thread of Dask asks for it without workers every two
            # seconds, and either may get what the other has asked for.
            return dict(sorted(self.client.nthreads().items()))
        except OSError as error:
            raise ClusterLost("the scheduler of the cluster is gone: fit again") from error

    def assign(self, layout: Layout) -> None:
        """Deal cells out so that work is even and each worker needs few blocks."""
        workers = self._some_workers()
        key = (tuple(workers.items()), layout.n_rows)
        if key != self._assigned:
            self._assigned, self.of_cell = key, dealt_out(layout, workers)
            self._copies.clear()

    def near(self, block: Any, cell: Cell) -> Any:
        """Return the future of a block that stays on the worker of a cell.

        Each worker has its own: the scheduler drops second copies of one result after a while, and
        rows would travel again.
        """
        name = self.of_cell.get(cell, ""), block.key
        if name not in self._copies:
            self._copies[name] = self.submit(same, block, cell=cell)
        return self._copies[name]

    def _some_workers(self) -> dict[str, int]:
        """Return the workers; wait a little if there are none."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := self.workers()):
            if time.monotonic() > deadline:
                raise ClusterLost(
                    f"the cluster has had no workers for {PATIENCE_SECONDS:.0f} seconds: start "
                    f"some, and fit again"
                )
            time.sleep(0.2)
        return found

    def submit(self, task: Callable[..., Any], *given: Any, cell: Cell | None = None) -> Any:
        """Start a task; return its future. What it returns stays where it was computed."""
        place = {}
        if cell is not None and cell in self.of_cell:
            place = {"workers": [self.of_cell[cell]], "allow_other_workers": True}
        with warnings.catch_warnings():
            # Numbers of target pairs do travel with tasks; Dask would have them placed beforehand.
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.client.submit(task, *given, pure=False, **place)

    def keep(self, task: Callable[..., Any], cells: dict[Cell, CellTask]) -> dict[Cell, Any]:
        """Run a task for each cell; return futures of what stays on the workers.

        One task does all cells of a worker: tasks that wait may be moved to an idle worker, and
        their rows would travel there.
        """
        found = {}
        for group in self._groups(cells):
            together = self._start(task, cells, group, {})
            for number, cell in enumerate(group):
                found[cell] = self.submit(part_of, together, number, cell=cell)
        return {cell: found[cell] for cell in cells}

    def collect(
        self, task: Callable[..., Any], cells: dict[Cell, CellTask], **shared: Any
    ) -> dict[Cell, Any]:
        """Run a task for all cells, one task for each worker; return their results."""
        groups = self._groups(cells)
        found: dict[Cell, Any] = {}
        for group, results in zip(groups, self._run(task, cells, groups, shared), strict=True):
            found.update(zip(group, results, strict=True))
        return {cell: found[cell] for cell in cells}

    def total(
        self,
        task: Callable[..., Any],
        cells: dict[Cell, CellTask],
        add: Callable[..., Any],
        by_block: dict[str, list[Any]] | None = None,
        **shared: Any,
    ) -> list[Any]:
        """Run a task for all cells; return what each worker has added up.

        ``by_block`` holds arguments that have one entry for each block; a worker gets those of
        its blocks, as dicts.
        """
        groups = self._groups(cells)
        return self._run(task, cells, groups, shared, add, by_block or {})

    def total_matrix(
        self,
        task: Callable[..., Any],
        cells: dict[Cell, CellTask],
        add: Callable[..., Any],
        nbytes: int,
        by_block: dict[str, list[Any]] | None = None,
        **shared: Any,
    ) -> tuple[list[Any], Any]:
        """As :meth:`total`, where ``add`` returns a matrix of ``nbytes`` and something else.

        Large matrices are added up among the workers, so that one comes here; they are on a grid,
        and have the same bits in any order. The sum is None if there are no cells.
        """
        groups = self._groups(cells)
        if not groups:
            return [], None
        both = self._started(task, cells, groups, shared, add, by_block or {})
        if nbytes * len(groups) <= SMALL_BYTES:
            # Fewer tasks.
            results = self.results(both)
            matrices = [matrix for matrix, _ in results]
            return [other for _, other in results], sum(matrices[1:], start=matrices[0])
        others = [self.submit(part_of, each, 1) for each in both]
        matrix = self.added(self.submit(part_of, each, 0) for each in both)
        # From here on the workers need not keep both parts.
        del both
        *found, total = self.results([*others, matrix])
        return found, total

    def added(self, futures: Iterable[Any]) -> Any:
        """Return the future of a sum, made among the workers in the order of the terms.

        The client would hold all of its terms at once.
        """
        terms = list(futures)
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            rest = terms[-1:] if len(terms) % 2 else []
            terms = [self.submit(plus, *pair) for pair in pairs] + rest
        return terms[0]

    def _groups(self, cells: Iterable[Cell]) -> list[list[Cell]]:
        """Cells of each worker."""
        by_worker: dict[str, list[Cell]] = {}
        for cell in cells:
            by_worker.setdefault(self.of_cell.get(cell, ""), []).append(cell)
        return list(by_worker.values())

    def _run(
        self,
        task: Callable[..., Any],
        cells: dict[Cell, CellTask],
        groups: list[list[Cell]],
        shared: dict[str, Any],
        add: Callable[..., Any] | None = None,
        by_block: dict[str, list[Any]] | None = None,
    ) -> list[Any]:
        """Run a task for the cells of each worker; return the results."""
        return self.results(self._started(task, cells, groups, shared, add, by_block or {}))

    def _started(
        self,
        task: Callable[..., Any],
        cells: dict[Cell, CellTask],
        groups: list[list[Cell]],
        shared: dict[str, Any],
        add: Callable[..., Any] | None,
        by_block: dict[str, list[Any]],
    ) -> list[Any]:
        """Start a task for the cells of each worker; return their futures."""
        futures = []
        for group in groups:
            blocks = sorted({block for cell in group for block in cell})
            given = {name: {b: each[b] for b in blocks} for name, each in by_block.items()}
            futures.append(self._start(task, cells, group, shared | given, add))
        return futures

    def _start(
        self,
        task: Callable[..., Any],
        cells: dict[Cell, CellTask],
        group: list[Cell],
        given: dict[str, Any],
        add: Callable[..., Any] | None = None,
    ) -> Any:
        """Start a task for the cells of one worker; return its future."""
        own = [list(cells[cell]) for cell in group]
        return self.submit(run_cells, task, own, given, _working_memory(), add, cell=group[0])

    def results(self, futures: Iterable[Any]) -> list[Any]:
        """Wait for results and bring them here; notice if there is no cluster any more."""
        from distributed import CancelledError, wait
        from distributed.comm import CommClosedError

        futures = list(futures)
        alone_since = None
        while True:
            failed: list[Any] = []
            try:
                wait(futures, timeout=POLL_SECONDS)
                failed = [future for future in futures if future.status == "error"]
                if not failed:
                    found = list(self.client.gather(futures))
                    for future in futures:
                        # Now, not when they are collected: results take memory on the workers.
                        future.release()
                    self._forget_messages()
                    return found
            except TimeoutError:
                pass
            except (CancelledError, CommClosedError, OSError) as error:
                raise ClusterLost("the scheduler of the cluster is gone: fit again") from error
            if failed:
                # Outside of the try: a task may raise an OSError or TimeoutError of its own. The
                # client keeps the error itself, whose frames would keep the rows of the fit.
                raise _without_frames(failed[0].exception())
            if self.client.status not in ("running", "connecting", "newly-created"):
                raise ClusterLost("the connection to the cluster is closed: fit again")
            if self._alive():
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > PATIENCE_SECONDS:
                raise ClusterLost(
                    "the cluster has no workers any more, or its scheduler does not answer: "
                    "fit again"
                )

    def _forget_messages(self) -> None:
        """Let Dask forget what was sent: its logs may take more memory than the rows.

        Each connection keeps its last thousand messages, with arguments of tasks, unless they
        are longer than a megabyte (docs/cluster.md).
        """
        self._waits += 1
        # A cluster that is lost is noticed by the next wait.
        with suppress(Exception):
            self.client.scheduler_comm.recent_message_log.clear()
            if self._waits % WAITS_BETWEEN == 0:
                self.client.run_on_scheduler(forget_messages)

    def tell(self, task: Callable[[], None]) -> None:
        """Run something on all workers that are there; a cluster that is lost needs it no more."""
        with suppress(Exception):
            if self.client.status == "running" and self._alive():
                self.client.run(task, on_error="ignore")

    def _alive(self) -> bool:
        """Whether the scheduler answers and has workers."""
        try:
            return bool(self.workers())
        except Exception:
            return False


def _without_frames(error: BaseException | None) -> BaseException:
    """Return a copy of an error that holds no frames, and so no rows."""
    if error is None:
        # Seen where a worker had no memory left to tell what happened.
        return ClusterLost("a task failed and its worker could not say why: look at its log")
    try:
        return copy(error).with_traceback(None)
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


def forget_messages(dask_scheduler: Any) -> None:
    """Empty the logs of the messages that a scheduler has sent; runs there."""
    for connected in (dask_scheduler.stream_comms, dask_scheduler.client_comms):
        for comm in connected.values():
            comm.recent_message_log.clear()


def same(value: Any) -> Any:
    """Return a value: it stays where this runs, and can be computed again."""
    return value


def _working_memory() -> float:
    """Return scikit-learn's setting of this process: that of the workers would not be seen."""
    return float(get_config()["working_memory"])
