"""Processes that are started to be tested: Spark's drivers, and two under `jax.distributed`."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

JAVA = Path(os.environ.get("JAVA_HOME", "/usr")) / "bin" / "java"
HERE = Path(__file__).parent


def why_no_spark() -> str:
    """Why there is no Spark to start; nothing where there is one."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'limbeck[spark]'"
    if not JAVA.exists() and shutil.which("java") is None:
        return "there is no Java"
    return ""


def driver(mode: str, master: str, folder: Path) -> subprocess.Popen[str]:
    """`on_spark.py` at work."""
    words = [sys.executable, str(HERE / "on_spark.py"), mode, master, str(folder)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def why_no_connect() -> str:
    """Why there is no Spark Connect; nothing where there is one."""
    missing = importlib.util.find_spec("grpc") is None
    return why_no_spark() or ("grpcio is not installed" if missing else "")


def both(mode: str, folder: Path) -> tuple[dict[str, str], int]:
    """What the first process printed, and how it ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = str(HERE / "on_processes.py")
    words = [[sys.executable, script, str(me), str(port), mode, str(folder)] for me in (0, 1)]
    first, other = (
        subprocess.Popen(w, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for w in words
    )
    try:
        shown, errors = first.communicate(timeout=250)
    finally:
        other.kill()
        other.communicate()
    found = dict(line.split(" ", 1) for line in shown.splitlines() if " " in line)
    assert found, errors[-2000:]
    return found, first.returncode
