"""Where the fits of a command run."""

from __future__ import annotations

from lnml.errors import InputError


def check_device(name: str | None) -> str | None:
    """Return the name of a device that is there, None for the CPU, or say why it cannot be used."""
    if name is None or name == "cpu":
        return None
    from lnml.kernels import get_kernels

    try:
        get_kernels(name)
    except (ModuleNotFoundError, RuntimeError, ValueError) as error:
        raise InputError(str(error)) from error
    return name


def fold_jobs(jobs: int | None, device: str | None) -> int:
    """Folds at the same time: as asked for, or else one for each core, and one on a GPU."""
    if jobs is not None:
        return jobs
    return -1 if device is None else 1
