"""What `limbeck verify` says where JAX is not installed, and at the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from forging import put, tamper

# ---- without JAX --------------------------------------------------------------------------------

OLD = Path(__file__).parents[1] / "oracles" / "format1"
NO_JAX = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
sys.argv = ["limbeck", *sys.argv[1:]]
from limbeck.cli.main import main
try:
    main()
finally:
    print("loaded:", *sorted({{name.split(".")[0] for name in sys.modules}}))
"""


def run_without(missing: set[str], *words: str) -> subprocess.CompletedProcess[str]:
    program = NO_JAX.format(missing=missing)
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, cwd=root
    )


@pytest.mark.parametrize(
    "missing",
    [{"jax", "jaxlib"}, {"jax", "jaxlib", "equinox", "optax", "pandas", "pyarrow", "PIL"}],
)
def test_verify_works_where_jax_is_not_installed(sealed: Path, missing: set[str]) -> None:
    done = run_without(missing, "verify", str(sealed))
    assert done.returncode == 3, done.stderr
    assert "arithmetic holds; questions not compared: JAX is not installed" in done.stdout
    assert "Epsilon     1 at delta 1e-05" in done.stdout and not done.stderr


def test_a_forgery_is_refused_where_jax_is_not_installed(release: Path) -> None:
    tamper(release, put("charges", 0, "noise_multiplier", value=99.0))
    done = run_without({"jax"}, "verify", str(release))
    assert done.returncode == 2 and "claims epsilon" in done.stderr


def test_arithmetic_alone_loads_no_jax(sealed: Path) -> None:
    done = run_without(set(), "verify", "--arithmetic", "--json", str(sealed))
    assert done.returncode == 3, done.stderr
    told, loaded = done.stdout.split("loaded:")
    assert not {"jax", "pandas", "pyarrow"} & set(loaded.split())
    assert json.loads(told)["verified"] is False and "not compared" in json.loads(told)["open"][0]


def test_the_command_says_yes_only_if_everything_holds(
    sealed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from limbeck.cli import main as cli

    for folder, code in ((sealed, 0), (OLD / "dp-kip", 3), (sealed / "nowhere", 2)):
        monkeypatch.setattr("sys.argv", ["limbeck", "verify", str(folder)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == code
        told = capsys.readouterr().out
        assert ("Not verified" in told) == (code == 3)
        assert ("noise that can be removed" in told) == (code == 3)
