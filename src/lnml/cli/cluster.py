"""The Dask cluster that a command works on: one that runs already, or one of its own."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import active_children
from typing import Annotated, Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

import typer

from lnml.cli.app import show_notes, signal_means
from lnml.errors import InputError, require
from lnml.version import __version__

# A wrong address is told within ten seconds.
CONNECT_SECONDS = 5
WORKER_SECONDS = 10
SPAWN_SECONDS = 5
START_SECONDS = 60
CLOSE_SECONDS = 10
DASHBOARD_SECONDS = 2
LOCAL = "local"
DASHBOARD = "localhost:8787"
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")

Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Work on a Dask cluster: the address of its scheduler (tcp://host:8786), or local:4 "
        "for 4 worker processes on this machine; needs lnml\\[dask].",
        show_default=False,
    ),
]


class Connected(NamedTuple):
    """A cluster.

    Attributes
    ----------
    client : distributed.Client
        The connection.
    about : str
        What it is, for people.
    dashboard : str
        Where its work can be watched.
    """

    client: Any = None
    about: str = ""
    dashboard: str = ""

    def tell(self, *, quiet: bool) -> None:
        """Say where the work is done."""
        show_notes([f"{self.about}; {self.dashboard}"], quiet=quiet)

    @property
    def setting(self) -> dict[str, str]:
        """What reports say of it; results do not depend on it, but times do."""
        return {"cluster": self.about} if self.about else {}


def check_cluster(
    address: str | None, *, device: str | None = None, jobs: int | None = None
) -> None:
    """Refuse an address, or options beside it, that cannot be meant, before any work."""
    if address is None:
        return
    for module in ("dask", "distributed"):
        require(module, extra="dask")
    if device is not None:
        raise InputError(
            "--device is for fits in this process, and those of a cluster run on the processors of "
            "its workers: leave out --device or --cluster"
        )
    if jobs is not None:
        raise InputError(
            "--jobs is for processes of this machine, and each worker of a cluster runs one fold "
            "at a time: leave it out, or say how many workers (--cluster local:4)"
        )
    _local_workers(address)


def _local_workers(address: str) -> int | None:
    """Return how many processes a local cluster shall have; None for the address of another."""
    name, colon, count = address.partition(":")
    if name != LOCAL:
        return None
    if not colon:
        from lnml.kernels.cpu.threads import core_count

        return core_count()
    if not count.isdecimal() or int(count) < 1:
        raise InputError(f"--cluster local:N needs a number of worker processes; got {address!r}")
    return int(count)


@contextmanager
def connected(address: str) -> Iterator[Connected]:
    """Connect to a cluster, or start one that ends with the block, however that ends.

    What Dask logs is for those who run a cluster; the command says in one line what went wrong.
    """
    from distributed import KilledWorker

    from lnml.kernels.cluster.crew import ClusterLost

    n_workers = _local_workers(address)
    with ExitStack() as stack:
        stack.enter_context(_without_logs())
        if n_workers is None:
            client, name = _connect(stack, address), address
        else:
            client, name = _start(stack, n_workers), "local cluster"
        workers = _check_workers(client, address)
        threads = set(workers.values()) if n_workers is None else {_local_threads(n_workers)}
        about = f"{name}, {_described(len(workers), threads)}"
        try:
            yield Connected(client, about, _dashboard(client))
        except ClusterLost as error:
            raise InputError(str(error)) from error
        except KilledWorker as error:
            raise MemoryError(
                "several workers died in the same task, perhaps for lack of memory: give the "
                "workers more, or take fewer rows"
            ) from error


@contextmanager
def perhaps_connected(address: str | None, *, quiet: bool) -> Iterator[Connected]:
    """Do the same with a note; without an address, there is no client, and work runs here."""
    if address is None:
        yield Connected()
        return
    with connected(address) as found:
        found.tell(quiet=quiet)
        yield found


def _connect(stack: ExitStack, address: str) -> Any:
    """Return a client of the scheduler at an address."""
    from distributed import Client

    try:
        asyncio.run(asyncio.wait_for(_greet(address), CONNECT_SECONDS))
        with warnings.catch_warnings():
            # Of versions that differ: what matters is checked.
            warnings.simplefilter("ignore")
            client = Client(address, timeout=CONNECT_SECONDS)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"--cluster {address!r} is no address ({error}): write it as tcp://host:8786, or "
            f"local:4 for 4 processes of this machine"
        ) from error
    except (OSError, TimeoutError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address} within {CONNECT_SECONDS} seconds: check the "
            f"address, and whether it runs (dask scheduler)"
        ) from error
    stack.callback(_close, client)
    return client


async def _greet(address: str) -> None:
    """Shake hands with a scheduler; a client would wait for ever where another server is."""
    from distributed.comm import connect
    from distributed.security import Security

    settings = Security().get_connection_args("client")
    comm = await connect(address, timeout=CONNECT_SECONDS, **settings)
    await comm.close()


def _start(stack: ExitStack, n_workers: int) -> Any:
    """Start worker processes on this machine; return a client."""
    import dask
    from distributed import Client, LocalCluster
    from distributed.system import MEMORY_LIMIT

    threads = str(_local_threads(n_workers))
    environment = dict.fromkeys(_THREADS, threads) | {"PYTHONWARNINGS": "ignore"}
    # Dask sets these here, too, and what is set here goes before the settings.
    before = {name: os.environ.pop(name, None) for name in environment}
    stack.callback(_restore, before)
    stack.enter_context(dask.config.set({"distributed.nanny.pre-spawn-environ": environment}))
    try:
        with warnings.catch_warnings():
            # Of a port that is taken: another one is found.
            warnings.simplefilter("ignore")
            cluster = LocalCluster(
                n_workers=0,
                threads_per_worker=1,
                memory_limit=MEMORY_LIMIT // n_workers,
                processes=True,
                silence_logs=logging.CRITICAL,
                dashboard_address=DASHBOARD,
            )
        stack.callback(_close, cluster)
        client = Client(cluster, timeout=CONNECT_SECONDS)
        stack.callback(_close, client)
        known = len(active_children())
        # A terminal sends Ctrl-C to all processes, and workers would show where they were. Those
        # that are started while it is ignored always ignore it.
        with signal_means(signal.SIGINT, signal.SIG_IGN):
            cluster.scale(n_workers)
            deadline = time.monotonic() + SPAWN_SECONDS
            while len(active_children()) < known + n_workers and time.monotonic() < deadline:
                time.sleep(0.01)
        # One that died while it started is not started again; the others will do.
        with suppress(TimeoutError):
            client.wait_for_workers(n_workers, timeout=START_SECONDS)
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
        # Workers that take the place of dead ones were not started in that block.
        client.register_plugin(_deaf_worker())
    except (OSError, RuntimeError, TimeoutError) as error:
        raise InputError(
            f"{n_workers} worker processes cannot be started ({error}): ask for fewer"
        ) from error
    _restore(before)
    return client


def _deaf_worker() -> Any:
    """Return a plugin with which workers ignore Ctrl-C."""
    from distributed import WorkerPlugin

    class Deaf(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return Deaf()


def _local_threads(n_workers: int) -> int:
    """Return how many threads a worker process of this machine may use in its one task."""
    from lnml.kernels.cpu.threads import core_count, thread_count

    return max(1, min(core_count() // n_workers, thread_count()))


def _restore(before: dict[str, str | None]) -> None:
    """Give environment variables the values they had."""
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _close(what: Any) -> None:
    # Whatever fails here, the work is done, or its error is told.
    with suppress(Exception):
        what.close(timeout=CLOSE_SECONDS)


@contextmanager
def _without_logs() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _check_workers(client: Any, address: str) -> dict[str, int]:
    """Return the workers and their threads, or say why they cannot be used."""
    from lnml.kernels.cluster.crew import Crew

    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
        found = client.run(worker_version)
    except TimeoutError as error:
        raise InputError(
            f"the cluster at {address} has no workers: start some (dask worker {address})"
        ) from error
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"the workers at {address} cannot import lnml ({error}): install lnml[cli,dask] "
            f"{__version__} there, too"
        ) from error
    for host, version in found.values():
        if version != __version__:
            raise InputError(
                f"a worker on {host} has lnml {version}, and this is {__version__}: install the "
                f"same version on all machines"
            )
    return Crew(client).workers()


def worker_version() -> tuple[str, str]:
    """Return the name of the machine and the version of lnml that runs there."""
    return socket.gethostname(), __version__


def _described(n_workers: int, threads: set[int]) -> str:
    shown = "1 thread" if threads == {1} else f"{'-'.join(map(str, sorted(threads)))} threads"
    return f"1 worker with {shown}" if n_workers == 1 else f"{n_workers} workers with {shown} each"


def _dashboard(client: Any) -> str:
    """Say where the work can be watched."""
    try:
        link = client.dashboard_link
        with urlopen(link, timeout=DASHBOARD_SECONDS) as page:
            if b"Dask needs bokeh" in page.read(1000):
                return "no dashboard, because its scheduler has no bokeh (pip install bokeh)"
    except (KeyError, ValueError, HTTPError):
        # The scheduler has none, and Dask makes up no address, or one where nothing is.
        return "no dashboard"
    except OSError:
        # Perhaps it can be reached from elsewhere.
        pass
    return f"dashboard at {link}"
