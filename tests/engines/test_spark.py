"""Spark: two executors, each a JVM of its own, measure what one process measures, to the byte."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

JAVA = Path(os.environ.get("JAVA_HOME", "/usr")) / "bin" / "java"


def why_not() -> str:
    if not os.environ.get("LIMBECK_ENGINE_TESTS"):
        return "takes minutes on busy cores: set LIMBECK_ENGINE_TESTS=1"
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'limbeck[spark]'"
    if not JAVA.exists() and shutil.which("java") is None:
        return "there is no Java"
    return ""


pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "all there"),
    pytest.mark.xdist_group("spark"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """What the script found on two executors, and where Spark wrote its events."""
    folder = tmp_path_factory.mktemp("spark")
    script = Path(__file__).parent / "on_spark.py"
    done = subprocess.run(
        [sys.executable, str(script), "local-cluster[2,1,1024]", str(folder)],
        capture_output=True,
        text=True,
        timeout=280,
    )
    found = re.search(r"^FOUND (.*)$", done.stdout, re.MULTILINE)
    assert found, done.stderr[-3000:]
    return json.loads(found[1]), folder


def test_counts_have_the_same_bytes_in_any_parts(cluster: tuple[dict[str, Any], Path]) -> None:
    found, _ = cluster
    assert found["1 part"] == found["here"]


def test_float_maps_have_the_same_bytes_on_like_machines(
    cluster: tuple[dict[str, Any], Path],
) -> None:
    found, _ = cluster
    assert found["floats"] == found["floats here"] != found["here"]


def test_a_task_that_fails_and_an_executor_that_dies_count_nothing_twice(
    cluster: tuple[dict[str, Any], Path],
) -> None:
    found, folder = cluster
    assert (folder / "failed").exists() and found["killed"] == [True]
    assert found["7 parts, a failed task"] == found["here"]
    assert found["3 parts, a killed executor"] == found["here"]


def test_persons_meet_wherever_their_rows_lie(cluster: tuple[dict[str, Any], Path]) -> None:
    found, _ = cluster
    assert found["persons"] == found["persons here"] != found["here"]


def test_a_method_that_spark_cannot_carry_is_refused(
    cluster: tuple[dict[str, Any], Path],
) -> None:
    found, _ = cluster
    assert "cannot be answered by the engine spark" in found["refused"]
    assert found["engine"]["name"] == "spark"


def test_no_key_is_written_where_spark_writes(cluster: tuple[dict[str, Any], Path]) -> None:
    """The seed's secret and the key of persons are in none of Spark's files, in hex or base64."""
    import base64

    from limbeck.privacy import Noise

    noise = Noise.from_seed(0)
    keys = [noise.secret, noise.stream("rows of persons").words(8).tobytes()]
    shown = [text for key in keys for text in (key, key.hex().encode(), base64.b64encode(key)[:-4])]
    _, folder = cluster
    files = [p for p in folder.rglob("*") if p.is_file()]
    events = [p for p in files if p.read_bytes()[:20].find(b"Event") > 0]
    assert events, [p.name for p in files][:20]
    for path in files:
        content = path.read_bytes()
        assert not any(text in content for text in shown), path.name
