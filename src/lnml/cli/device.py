"""Where the fits of a command run."""

from __future__ import annotations

from lnml.errors import InputError


def check_device(name: str | None) -> str | None:
    """Return the name of a usable device, or None for the CPU; say why another cannot be used."""
    if name is None or name == "cpu":
        return None
    from lnml.kernels import get_kernels

    try:
        get_kernels(name)
    except (ModuleNotFoundError, RuntimeError, ValueError) as error:
        raise InputError(str(error)) from error
    return name


def fold_jobs(jobs: int | None, device: str | None) -> int:
    """Return how many folds run at the same time; by default one per core, or one on a GPU."""
    if jobs is not None:
        return jobs
    return -1 if device is None else 1
