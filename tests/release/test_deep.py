"""`verify --deep`: what is free is made again, so real rows passed off as a release are found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import reseal, tamper
from helpers import FEW, TINY, image_rows, image_schema, table_rows, table_schema

import limbeck as lk
from limbeck.cli import main as cli

QUICK = lk.Marginals(grid=32, groups=4, soft_rows=150, steps=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Releases of several kinds, which tests copy."""
    folder = tmp_path_factory.mktemp("deep")
    book = lk.Ledger(folder / "ledger.sqlite")
    table = lk.read(table_rows(150), table_schema())
    pictures = lk.read(image_rows(60), image_schema())
    lk.distill(table, QUICK, 1.0, out=folder / "soft_rows", ledger=book)
    lk.distill(table, lk.DPMERF(**TINY), 1.0, out=folder / "generator", ledger=book)
    lk.distill(pictures, lk.DPKIP(**FEW), 1.0, out=folder / "distilled", ledger=book)
    release = lk.Release.load(folder / "soft_rows")
    lk.redistill(release, {"soft_rows": 80}, out=folder / "redistilled")
    names = ("soft_rows", "generator", "distilled", "redistilled")
    return {name: folder / name for name in names}


@pytest.mark.parametrize("name", ["soft_rows", "generator", "distilled", "redistilled"])
def test_an_honest_release_can_be_made_again(made: dict[str, Path], name: str) -> None:
    verdict = lk.verify(made[name], deep=True)
    assert "in the same bytes" in verdict.redone
    assert verdict.verified == (name != "distilled")
    if name == "distilled":
        assert verdict.open == (
            "cannot be redone: dp-kip keeps no measurements to make its rows' source from",
        )


def _real_rows(folder: Path) -> None:
    schema = lk.Schema.load(folder / "schema.toml")
    rows = lk.Release.load(folder).data
    real = lk.read(table_rows(len(rows), seed=77), schema)._encoded()
    schema.decode(real.cells, real.labels).to_parquet(folder / "data.parquet")


def _one_real_row(folder: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "data.parquet").to_pandas()
    table.loc[0, "income"] = 123.0
    import pyarrow as pa

    schema = pq.read_schema(folder / "data.parquet")
    pq.write_table(pa.Table.from_pandas(table, schema=schema), folder / "data.parquet")


def _another_source(folder: Path) -> None:
    """The numbers that rows come from, changed, and the rows drawn from them anew."""
    from limbeck.release import draw
    from limbeck.release.write import write

    release = lk.Release.load(folder)
    arrays = dict(release.source.arrays())
    key = next(n for n, a in arrays.items() if a.dtype.kind == "f" and a.size > 20)
    arrays[key] = arrays[key][::-1].copy()
    source = type(release.source).load(release.schema, release.source.facts(), arrays)
    seed = release.certificate["method"]["rows_seed"]
    data = draw(release.schema, source, release.rows, seed=seed)
    again = lk.Release(
        schema=release.schema,
        certificate=release.certificate,
        data=data,
        source=source,
        measurements=release.measurements,
    )
    write(again, folder)


def _other_measurements(folder: Path) -> None:
    with np.load(folder / "measurements.npz", allow_pickle=False) as file:
        arrays = {name: np.array(file[name]) + 1.0 for name in file}
    np.savez(folder / "measurements.npz", **arrays)


def _another_card(folder: Path) -> None:
    (folder / "README.md").write_text("Perfectly anonymous.\n")


FORGED: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "rows": ("soft_rows", _real_rows, "data.parquet"),
    "rows of a generator": ("generator", _real_rows, "data.parquet"),
    "one row": ("soft_rows", _one_real_row, "data.parquet"),
    "source": ("soft_rows", _another_source, "softrows.npz"),
    "generator": ("generator", _another_source, "generator.npz"),
    "measurements": ("soft_rows", _other_measurements, "softrows.npz"),
    "card": ("soft_rows", _another_card, "README.md"),
}


@pytest.mark.parametrize("forged", FORGED)
def test_real_rows_passed_off_as_a_release_are_found(
    made: dict[str, Path], tmp_path: Path, forged: str
) -> None:
    """A forger who makes all checksums right again: only doing it again tells, and names the file."""
    name, forge, told = FORGED[forged]
    folder = Path(shutil.copytree(made[name], tmp_path / "forged"))
    forge(folder)
    reseal(folder)
    assert lk.verify(folder).verified
    with pytest.raises(lk.ReleaseError, match="does not follow") as refused:
        lk.verify(folder, deep=True)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "field", ["public_seed", "rows_seed"], ids=["another public seed", "another seed of rows"]
)
def test_another_seed_gives_other_rows(made: dict[str, Path], tmp_path: Path, field: str) -> None:
    folder = Path(shutil.copytree(made["generator"], tmp_path / "seeded"))

    def change(certificate: dict[str, Any]) -> None:
        certificate["method"][field] += 1

    tamper(folder, change)
    with pytest.raises(lk.ReleaseError, match="does not follow"):
        lk.verify(folder, deep=True)


def test_a_certificate_without_a_seed_of_its_rows_leaves_them_open(
    made: dict[str, Path], tmp_path: Path
) -> None:
    """Rows of older versions, or of a forger who would rather not be asked."""
    folder = Path(shutil.copytree(made["soft_rows"], tmp_path / "unsown"))
    tamper(folder, lambda certificate: certificate["method"].update(rows_seed=None))
    verdict = lk.verify(folder, deep=True)
    assert not verdict.verified and "names no seed of its rows" in " ".join(verdict.open)


def test_on_another_machine_there_is_a_tolerance(made: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made["soft_rows"], tmp_path / "elsewhere"))

    def elsewhere(certificate: dict[str, Any]) -> None:
        certificate["machine"]["processors"][0]["model"] = "another one"

    tamper(folder, elsewhere)
    verdict = lk.verify(folder, deep=True)
    assert verdict.verified and "within 0.001 on another kind of machine" in verdict.redone
    _real_rows(folder)
    reseal(folder)
    verdict = lk.verify(folder, deep=True)
    assert not verdict.verified and "cannot be redone on another kind" in verdict.open[0]


def test_the_command_makes_it_again(
    made: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, code, told in (
        ([made["soft_rows"]], 0, "in the same bytes"),
        ([made["soft_rows"], "--arithmetic"], 2, "--arithmetic"),
        ([made["soft_rows"] / "certificate.json"], 2, "is a file"),
        ([made["soft_rows"], "--json"], 0, '"redone": "rows'),
    ):
        monkeypatch.setattr("sys.argv", ["limbeck", "verify", "--deep", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == code
        output = capsys.readouterr()
        assert told in " ".join((output.out + output.err).split())
    assert json.loads(output.out)["verified"]
