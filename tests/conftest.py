"""Fixtures. Every test has a ledger of its own and a fixed day."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest
from jaxtyping import install_import_hook
from shapes import CHECKED

# Two test processes share two cores: one thread each is faster than four fighting.
# A program is compiled in one piece, too: with one thread, many pieces only take longer.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    " --xla_cpu_parallel_codegen_split_count=1",
)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # waiting threads spin: scikit-learn, xgboost
# Tests compile the same small programs again and again: both processes keep them in one place.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent / ".compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# Shapes and types of arrays, as they are annotated, are held wherever a test calls these modules: the
# hook must stand before anything imports them. An int passes for a float, as it does for mypy.
install_import_hook(CHECKED, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

# No tests: two files of one name, and a program that would run if it were imported.
collect_ignore = [
    "conftest.py",
    "cli/conftest.py",
    "release/conftest.py",
    "engines/on_processes.py",
]


GROWTH = 3 << 29
"""Bytes by which a test process may grow before it forgets its compiled programs, which nobody else drops: they
would come to some 6 GB. What is needed again comes from the folder of compiled programs."""
_before = 0  # bytes that it held when it had last forgotten them


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    global _before
    if sys.platform == "linux" and "jax" in sys.modules and resident() - _before > GROWTH:
        sys.modules["jax"].clear_caches()
        gc.collect()
        # The C library keeps what was freed, in pieces; where it is not glibc it may.
        getattr(ctypes.CDLL(None), "malloc_trim", lambda spare: 0)(0)
        _before = resident()


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(autouse=True, scope="session")
def small_chunks() -> None:
    """Maps work on chunks of one shape, up to 4096 rows: in tests nearly all of them filled up."""
    from limbeck.privacy import maps

    maps.CHUNK_BYTES = 1  # the fewest rows of a chunk, 64


@pytest.fixture(autouse=True)
def own_world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the user's ledger, and certificates bear a fixed date."""
    folder = tmp_path_factory.mktemp("ledger")
    monkeypatch.setenv("LIMBECK_LEDGER", str(folder / "ledger.sqlite"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return folder


def pytest_configure() -> None:
    """A package of one's own joins the laws: LIMBECK_LAWS names a module of it that has rows in
    `CASES` for its methods, in `KINDS` for its kinds of question, or both."""
    if name := os.environ.get("LIMBECK_LAWS"):
        import kinds
        import laws

        brought = import_module(name)
        laws.CASES += getattr(brought, "CASES", [])
        kinds.KINDS += getattr(brought, "KINDS", [])
