"""What this process computes on, as certificates tell it."""

from __future__ import annotations

import platform
from pathlib import Path


def processor() -> dict[str, str]:
    """What this process computes on: maps in floating point give the same bits on like processors."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    model = next(named, "") or platform.processor() or "unknown"
    return {"architecture": platform.machine(), "model": model}
