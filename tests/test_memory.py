"""Freed memory is kept by our own command, and left to the C library in other programs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

PAGES, TIMES = 10_000, 20
WORK = f"""
import resource
import limbeck
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults()
for _ in range({TIMES}):
    b"x" * ({PAGES} * resource.getpagesize())
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked")
def test_only_the_command_keeps_freed_memory(tmp_path: Path) -> None:
    assert _faults(tmp_path / "limbeck") < 2 * PAGES
    assert _faults(tmp_path / "notebook") > TIMES * PAGES / 2


def _faults(script: Path) -> int:
    script.write_text(WORK)
    asked = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, env=asked
    )
    return int(done.stdout)
