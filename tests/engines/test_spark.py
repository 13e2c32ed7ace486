"""Spark: two executors, each a JVM of its own, measure what one process measures, to the byte."""

from __future__ import annotations

import base64
import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from started import driver, why_no_spark

from limbeck.privacy import Noise

pytestmark = [
    pytest.mark.skipif(bool(why_no_spark()), reason=why_no_spark() or "all there"),
    pytest.mark.timeout(1200),
    pytest.mark.xdist_group("spark"),
]
Found = dict[str, Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> tuple[Found, Path]:
    """What the script found on two executors, and where Spark wrote its events."""
    folder = tmp_path_factory.mktemp("spark")
    killed = driver("dies", "local[1]", folder)
    main = driver("cluster", "local-cluster[2,1,1024]", folder)
    try:
        _, errors = killed.communicate(timeout=500)
        assert killed.returncode == -signal.SIGKILL, errors[-3000:]
        (folder / "dead").touch()
        shown, errors = main.communicate(timeout=900)
    finally:
        for process in (killed, main):
            process.kill()
    found = re.search(r"^FOUND (.*)$", shown, re.MULTILINE)
    assert found, errors[-3000:]
    return json.loads(found[1]), folder


def test_float_maps_have_the_same_bytes_on_like_machines(cluster: tuple[Found, Path]) -> None:
    found, _ = cluster
    assert found["floats"] == found["floats here"] != found["here"]


def test_a_killed_driver_goes_on_and_pays_nothing_more(cluster: tuple[Found, Path]) -> None:
    found, _ = cluster
    assert found["runs begun"] == 1 and found["no more runs"]
    assert found["1 part, a killed driver"] == found["here"]


def test_a_task_that_fails_and_an_executor_that_dies_count_nothing_twice(
    cluster: tuple[Found, Path],
) -> None:
    found, folder = cluster
    assert (folder / "failed").exists() and (folder / "failed late").exists()
    assert found["7 parts, failed tasks"] == found["here"]
    assert found["killed"] == [True] and found["3 parts, a killed executor"] == found["here"]


def test_persons_meet_wherever_their_rows_lie(cluster: tuple[Found, Path]) -> None:
    found, _ = cluster
    assert found["persons"] == found["persons here"] != found["here"]
    assert len(found["towns"]) > 2  # values were found, too, and by the same counts


def test_the_command_line_does_the_same(cluster: tuple[Found, Path]) -> None:
    found, _ = cluster
    assert found["command line"] == found["here"]


def test_progress_is_told_by_stages_and_nothing_is_kept_for_ever(
    cluster: tuple[Found, Path],
) -> None:
    found, _ = cluster
    assert found["on the way"] > 0 and found["kept at the end"] == 0


def test_what_spark_cannot_carry_is_refused(cluster: tuple[Found, Path]) -> None:
    found, _ = cluster
    assert "cannot be answered by the engine spark" in found["refused"]
    assert found["engine"]["name"] == "spark"


def test_no_key_is_written_where_spark_writes(cluster: tuple[Found, Path]) -> None:
    """The seed's secret and the key of persons are neither in Spark's configuration nor in its files: event
    logs, logs of executors, what it spills."""
    found, folder = cluster
    noise = Noise.from_seed(0)
    keys = [noise.secret, noise.stream("rows of persons").words(8).tobytes()]
    shown = [text for key in keys for text in (key, key.hex().encode(), base64.b64encode(key)[:-4])]
    files = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    events = [p for p, content in files.items() if b"SparkListenerTaskEnd" in content]
    logs = [p for p in files if p.name == "stderr"]
    assert len(events) == 2 and len(logs) >= 2, [p.name for p in files][:20]
    assert not any(text in json.dumps(found["configuration"]).encode() for text in shown)
    own = {folder / "ledger.sqlite", *(folder / "jobs").rglob("*")}
    for path, content in files.items():
        assert path in own or not any(text in content for text in shown), path.name
