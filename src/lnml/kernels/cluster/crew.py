"""The workers of a cluster, and how tasks reach them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from lnml.kernels.cluster.cells import CellTask, run_cells
from lnml.kernels.cluster.layout import Cell, Layout

# How often a wait looks whether there is still a cluster, and how long it may have no workers.
POLL_SECONDS = 2.0
PATIENCE_SECONDS = 30.0

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

    def workers(self) -> dict[str, int]:
        """Addresses of the workers that are there now, and their threads."""
        try:
            known = self.client.scheduler_info(n_workers=-1)["workers"]
        except TypeError:
            known = self.client.scheduler_info()["workers"]
        return {name: int(each["nthreads"]) for name, each in sorted(known.items())}

    def assign(self, layout: Layout) -> None:
        """Deal cells out so that work is even and each worker needs few blocks."""
        workers = self._some_workers()
        load = dict.fromkeys(workers, 0.0)
        blocks: dict[str, set[int]] = {name: set() for name in workers}
        total = sum(layout.size(a) * layout.size(b) for a, b in layout.cells)
        threads = sum(workers.values())
        for cell in layout.cells:
            size = layout.size(cell[0]) * layout.size(cell[1])

            def cost(name: str, cell: Cell = cell, size: int = size) -> tuple[float, float]:
                share = (load[name] + size) * threads / (total * workers[name])
                # Above its share a worker takes no more, unless all are there.
                return max(share - 1.0, 0.0), len(set(cell) - blocks[name]) + 0.5 * share

            best = min(workers, key=cost)
            load[best] += size
            blocks[best] |= set(cell)
            self.of_cell[cell] = best

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
        return self.client.submit(task, *given, pure=False, **place)

    def keep(self, task: Callable[..., Any], cells: dict[Cell, CellTask]) -> dict[Cell, Any]:
        """Run a task for each cell; return futures of what stays on the workers."""
        return {
            cell: self.submit(_one_cell, task, *given, cell=cell) for cell, given in cells.items()
        }

    def collect(
        self, task: Callable[..., Any], cells: dict[Cell, CellTask], **shared: Any
    ) -> dict[Cell, Any]:
        """Run a task for all cells, one task for each worker; return their results."""
        by_worker: dict[str, list[Cell]] = {}
        for cell in cells:
            by_worker.setdefault(self.of_cell.get(cell, ""), []).append(cell)
        futures = [
            self.submit(run_cells, task, [list(cells[c]) for c in group], shared, cell=group[0])
            for group in by_worker.values()
        ]
        found: dict[Cell, Any] = {}
        for group, results in zip(by_worker.values(), self.results(futures), strict=True):
            found.update(zip(group, results, strict=True))
        return {cell: found[cell] for cell in cells}

    def results(self, futures: Iterable[Any]) -> list[Any]:
        """Wait for results and bring them here; notice if there is no cluster any more."""
        from distributed import CancelledError, wait
        from distributed.comm import CommClosedError

        futures = list(futures)
        alone_since = None
        while True:
            try:
                wait(futures, timeout=POLL_SECONDS)
                return list(self.client.gather(futures))
            except TimeoutError:
                pass
            except (CancelledError, CommClosedError, OSError) as error:
                raise ClusterLost("the scheduler of the cluster is gone: fit again") from error
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

    def _alive(self) -> bool:
        """Whether the scheduler answers and has workers."""
        try:
            return bool(self.workers())
        except Exception:
            return False


def _one_cell(task: Callable[..., Any], rows: list[Any], given: dict[str, Any]) -> Any:
    """Run a task for one cell."""
    return run_cells(task, [(rows, given)], {})[0]
