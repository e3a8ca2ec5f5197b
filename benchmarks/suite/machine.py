"""Where and with what the figures were measured."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

PACKAGES = ("lnml", "numpy", "scipy", "scikit-learn", "numba")
ROOT = Path(__file__).resolve().parents[2]


def describe() -> dict[str, Any]:
    """Machine, versions and commit."""
    blas = [
        f"{library['internal_api']} {library['version']} ({library.get('architecture')})"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]
    return {
        "cpu": cpu_model(),
        "cores": available_cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "blas": sorted(set(blas)),
        "commit": commit(),
    }


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_model() -> str:
    """Model of the CPU, with the instruction set extensions that matter here."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    found = {key.strip(): value.strip() for key, value in fields.items()}
    wide = [name for name in ("avx2", "avx512f") if name in found.get("flags", "").split()]
    return " ".join([found.get("model name", "unknown"), *(f"({name})" for name in wide[-1:])])


def commit(root: Path = ROOT) -> str:
    """Commit of a working tree, marked if library or benchmarks differ from it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        head = git("rev-parse", "--short=10", "HEAD")
        changed = git("status", "--porcelain", "--", "src", "benchmarks", ":!benchmarks/results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head} with changes" if changed else head


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
