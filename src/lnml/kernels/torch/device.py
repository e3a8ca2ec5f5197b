"""The device a fit runs on: its name, its memory, and the settings of torch during a fit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

import torch
from sklearn import get_config
from threadpoolctl import ThreadpoolController

from lnml.core.text import memory_text
from lnml.kernels.torch.replay import forget_pool

# Share of the free memory that the tiles of one step may take, and the most that pays.
TILE_SHARE = 0.1
LARGEST_TILE = 2**32
# Share that the candidate pairs of a working set may take, also if they are more than they must
# be, and what one of them takes.
PAIR_SHARE = 0.6
MARGIN_SHARE = 0.2
PAIR_BYTES = 100
# Copies of the data without which no fit can start: sorted, scaled, conditioned, embedded.
DATA_COPIES = 4
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def parse_device(name: str) -> torch.device:
    """Return the device that a name such as "cuda:0" or "torch:cpu" stands for."""
    try:
        device = torch.device(name.removeprefix("torch:"))
    except RuntimeError as error:
        raise ValueError(
            f"device={name!r} is no device: use 'cpu', 'cuda', 'cuda:1' or None, which follows "
            f"the input"
        ) from error
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise RuntimeError(
                f"device={name!r}, but torch {torch.__version__} sees no GPU: install a CUDA "
                f"build of torch and a driver, or use device='cpu'"
            )
        return torch.device(
            "cuda", torch.cuda.current_device() if device.index is None else device.index
        )
    if device.type != "cpu":
        raise ValueError(f"device={name!r} is not supported: use 'cpu' or 'cuda'")
    return device


def free_bytes(device: torch.device) -> int:
    """Memory a fit may still take: of the GPU, or scikit-learn's ``working_memory``."""
    if device.type == "cpu":
        return int(get_config()["working_memory"] * 2**20)
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + unused


def tile_bytes(free: int) -> int:
    """Bytes that the tiles of one step may take together."""
    return max(min(int(TILE_SHARE * free), LARGEST_TILE), 2**16)


def check_room(device: torch.device, n_rows: int, n_features: int, itemsize: int) -> None:
    """Refuse data whose copies alone would not fit, before any work."""
    if device.type == "cpu":
        return
    free = free_bytes(device)
    needed = DATA_COPIES * n_rows * n_features * itemsize
    if needed > free:
        raise MemoryError(
            f"{n_rows:,} rows of {n_features} features take about {memory_text(needed)} in a "
            f"fit, and {device} has {memory_text(free)} free: about "
            f"{_leading_digits(n_rows * free / needed):,} rows would fit"
        )


@contextmanager
def fit_session(device: torch.device, n_rows: Callable[[], int]) -> Iterator[None]:
    """No gradients, exact float32 products, and errors that say how much memory there was.

    BLAS on the host works on d x d matrices only; several threads would wait for
    each other there. ``n_rows`` tells how many rows are fitted, as soon as that is known.
    """
    with _host_libraries().limit(limits=1, user_api="blas"), settings_of_a_fit(device):
        before = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
        try:
            yield
        except torch.cuda.OutOfMemoryError as error:
            held = torch.cuda.memory_allocated(device) - before
            message = out_of_memory(device, n_rows(), held, free_bytes(device), str(error))
            raise MemoryError(message) from error
        finally:
            forget_pool()


@cache
def _host_libraries() -> ThreadpoolController:
    """Return what can limit the threads of BLAS, looked for once: that takes milliseconds.

    A library that is loaded later is not limited.
    """
    return ThreadpoolController()


@contextmanager
def settings_of_a_fit(device: torch.device) -> Iterator[None]:
    """No gradients, exact float32 products, and the device that new work goes to."""
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(_exact_products())
        if device.type == "cuda":
            stack.enter_context(torch.cuda.device(device))
        yield


def out_of_memory(device: torch.device, n_rows: int, held: int, free: int, reason: str) -> str:
    """Say what a fit had and wanted when memory ran out, and how many rows would have fitted.

    Parameters
    ----------
    device : torch.device
        The GPU.
    n_rows : int
        Rows that were fitted.
    held, free : int
        Bytes that the fit held, and that were free, when it failed.
    reason : str
        Torch's error, which says how much was asked for.
    """
    found = re.search(r"allocate ([\d.]+) ([KMG]iB)", reason)
    wanted = float(found[1]) * UNITS[found[2]] if found else float(free)
    rows = _leading_digits(n_rows * (held + free) / max(held + wanted, 1.0))
    return (
        f"{device} ran out of memory: the fit of {n_rows:,} rows held {memory_text(held)} and "
        f"wanted {memory_text(wanted)} more, of which {memory_text(free)} were free. About "
        f"{rows:,} rows would fit; or free memory that others use"
    )


@contextmanager
def _exact_products() -> Iterator[None]:
    """Keep torch from using lower precision than was asked for inside matrix products."""
    cuda = torch.backends.cuda.matmul
    precision = torch.get_float32_matmul_precision()
    reduced = cuda.allow_fp16_reduced_precision_reduction
    torch.set_float32_matmul_precision("highest")
    cuda.allow_fp16_reduced_precision_reduction = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        cuda.allow_fp16_reduced_precision_reduction = reduced


def _leading_digits(count: float) -> int:
    """Return a count rounded down to two digits."""
    unit = 10 ** max(int(math.log10(max(count, 1.0))) - 1, 0)
    return int(count // unit * unit)
