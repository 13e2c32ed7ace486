"""Compiled programs are kept where nobody else can read or change them, and hold no rows."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from limbeck.cli import programs
from limbeck.cli.programs import FOLDER, SETTING, keep_programs

CANARY = 0.61803398874989
WORK = f"""
import sys
import numpy as np
import pandas as pd
import limbeck as lk
from limbeck.audits.small import small_method
rng = np.random.default_rng(0)
columns = (lk.Numeric(name="x", min=0, max=1), lk.Numeric(name="y", min=0, max=1),
           lk.Category(name="c", values=(0, 1), label=True))
rows = pd.DataFrame({{"x": [{CANARY}] * 60, "y": rng.random(60), "c": [0, 1] * 30}})
schema = lk.Schema(dataset="d", rows=60, columns=columns, lifetime=lk.Lifetime(filter="sum"))
lk.distill(lk.read(rows, schema), small_method(sys.argv[1]), lk.Budget(5.0, 1e-5), check=False,
           ledger=lk.Ledger(sys.argv[2]))
"""


def test_the_folder_is_its_owners_alone(tmp_path: Path) -> None:
    told = {"XDG_CACHE_HOME": str(tmp_path)}
    folder = keep_programs(told)
    assert (
        folder is not None and told[FOLDER] == str(folder) and folder.parent == tmp_path / "limbeck"
    )
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o750)
    again = {"XDG_CACHE_HOME": str(tmp_path)}
    assert keep_programs(again) is None and FOLDER not in again


def test_who_told_jax_already_is_not_overruled(tmp_path: Path) -> None:
    for name in (FOLDER, SETTING):
        told = {"XDG_CACHE_HOME": str(tmp_path), name: ""}
        assert keep_programs(told) is None and told[name] == ""
    assert not list(tmp_path.iterdir())


def test_no_place_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert keep_programs({"XDG_CACHE_HOME": str(tmp_path / "file")}) is None


def test_the_oldest_programs_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST_BYTES", 25)
    folder = keep_programs({"XDG_CACHE_HOME": str(tmp_path)})
    assert folder is not None
    for age, name in enumerate("abc"):
        (folder / name).write_bytes(bytes(10))
        os.utime(folder / name, (1e9 - age, 1e9 - age))
    keep_programs({"XDG_CACHE_HOME": str(tmp_path)})
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("method", ["dp-kip"])
def test_programs_hold_no_rows(method: str, tmp_path: Path) -> None:
    """A value that all rows have is in no program, in no precision: rows are arguments."""
    import numpy as np

    folder = tmp_path / "kept"
    least = {programs.LEAST[0]: "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WORK, method, str(tmp_path / "l.sqlite")],
        check=True,
        env=os.environ | least | {FOLDER: str(folder)},
    )
    kept = [path.read_bytes() for path in folder.iterdir() if path.name.endswith("-cache")]
    assert len(kept) > 5
    wanted = [np.asarray(CANARY, kind).tobytes() for kind in ("float32", "float64")]
    for program in kept:
        plain = zlib.decompress(program)
        assert b"HLO" in plain or len(plain) > 1000
        assert not any(canary in plain for canary in wanted)
