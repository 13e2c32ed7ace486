"""The bundle: complete, atomic, checkable; and a certificate that cannot be talked up."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import TINY, image_rows, image_schema, table_rows, table_schema
from PIL import Image as Picture

import limbeck as lk
from limbeck.data.write import contact_sheet
from limbeck.release import write as _write

METHOD = lk.DPMERF(**TINY)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lk.distill(
        lk.read(table_rows(150), table_schema()), METHOD, lk.Budget(1.0), out=tmp_path / "table"
    )
    return tmp_path / "table"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    data = lk.read(image_rows(60), image_schema())
    lk.distill(data, METHOD, lk.Budget(1.0), out=tmp_path / "images")
    return tmp_path / "images"


def _reseal(folder: Path) -> None:
    """Make the checksums right again, as a clever forger would."""
    lines = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "SHA256SUMS"):
        name = path.relative_to(folder).as_posix()
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n")
    (folder / "SHA256SUMS").write_text("".join(lines))


def _tamper(folder: Path, change: Any) -> None:
    path = folder / "certificate.json"
    certificate = json.loads(path.read_text())
    change(certificate)
    path.write_text(json.dumps(certificate))
    _reseal(folder)


def test_a_table_release_is_complete(table: Path) -> None:
    assert {p.name for p in table.iterdir()} == {
        "data.parquet", "data.csv", "certificate.json", "README.md", "croissant.json", "SHA256SUMS",
        "schema.toml", "generator.npz", "generator.json", "measurements.npz",
    }  # fmt: skip
    parquet, text = pd.read_parquet(table / "data.parquet"), pd.read_csv(table / "data.csv")
    assert list(parquet.columns) == list(text.columns) == [c.name for c in table_schema().columns]
    assert len(parquet) == len(text) == 200
    assert parquet["age"].between(0, 100).all() or parquet["age"].isna().any()
    card = (table / "README.md").read_text()
    assert card.startswith("---\n") and "**epsilon** 1.0" in card and "class counts" in card


def test_an_image_release_is_complete(images: Path) -> None:
    with np.load(images / "data.npz") as file:
        assert file["images"].shape[1:] == (8, 8, 1) and len(file["labels"]) == 100
    pngs = list((images / "images").rglob("*.png"))
    assert len(pngs) == 100 and {p.parent.name for p in pngs} <= {"0", "1", "2"}
    with Picture.open(images / "contact-sheet.png") as sheet:
        assert sheet.width > 20


def test_contact_sheets_name_their_classes_and_keep_colours() -> None:
    red, blue = np.zeros((2, 6, 6, 3), np.uint8)
    red[..., 0], blue[..., 2] = 255, 255
    pictures, labels = np.stack([red, blue, red]), np.array([0, 1, 0])
    named = np.asarray(contact_sheet(pictures, labels, ["rose", "Grüße, 海"]))
    bare = np.asarray(contact_sheet(pictures, labels, [""]))
    high = named.shape[0] // 2
    assert (named[high // 2, -10] == (255, 0, 0)).all()  # the second rose
    assert (named[high // 2, 4 : named.shape[1] // 4].min(axis=0) < 100).all()  # black letters
    blues = (named[high + high // 2] == (0, 0, 255)).all(axis=1)
    assert blues.any() and (named[high + high // 2, -10] == 255).all()  # there is one sky only
    assert bare.shape[1] < named.shape[1]  # no names, no room for them
    grey = contact_sheet(pictures[..., :1], labels, ["a", "b"])
    assert grey.mode == "L" and np.asarray(grey).min() == 0


def test_croissant_describes_every_column(table: Path) -> None:
    described = json.loads((table / "croissant.json").read_text())
    fields = [f["name"] for f in described["recordSet"][0]["field"]]
    assert fields == [c.name for c in table_schema().columns]
    for file in described["distribution"]:
        digest = hashlib.sha256((table / file["contentUrl"]).read_bytes()).hexdigest()
        assert digest == file["sha256"]


def test_verify_recomputes_epsilon(table: Path, images: Path) -> None:
    for folder in (table, images):
        found = lk.verify(folder)
        assert found.epsilon == pytest.approx(1.0) and found.delta == 1e-5
        assert found.verified and found.open == ()
        price = found.cost
        assert price.pld == pytest.approx(1.0, rel=1e-3) and 1.0 < price.rdp < 1.25


def _less_noise(certificate: dict) -> None:
    certificate["charges"][0]["noise_multiplier"] /= 4


def _more_steps(certificate: dict) -> None:
    certificate["charges"][1]["steps"] = 3


def _smaller_claim(certificate: dict) -> None:
    certificate["guarantee"]["epsilon"] = 0.5


def _all_smaller(certificate: dict) -> None:
    certificate["guarantee"]["epsilon"] = 0.5
    for name in ("epsilon", "epsilon_exact", "epsilon_pld", "epsilon_rdp"):
        certificate["accounting"][name] = 0.5


def _no_charges(certificate: dict) -> None:
    certificate["charges"] = []


def _other_schema(certificate: dict) -> None:
    certificate["data"]["schema_sha256"] = "0" * 64


def _replace_one(certificate: dict) -> None:
    certificate["guarantee"]["adjacency"] = "replace-one"


def _nothing_measured(certificate: dict) -> None:
    certificate["charges"] = []
    for name in ("epsilon", "epsilon_exact", "epsilon_pld", "epsilon_rdp", "delta_for_grid"):
        certificate["accounting"][name] = 0.0


def _reason_ignored(certificate: dict) -> None:
    certificate["not_releasable_because"] = ["law mode"]


def _other_unit(certificate: dict) -> None:
    certificate["guarantee"]["unit_of_privacy"] = "one household"


def _no_sensitivity(certificate: dict) -> None:
    certificate["charges"][1]["sensitivity"] = 0.5


def _emptied_schema(certificate: dict) -> None:
    certificate["data"]["schema"] = {}


def _seeded(certificate: dict) -> None:
    certificate["noise"]["seeded"] = True


def _no_delta(certificate: dict) -> None:
    del certificate["guarantee"]["delta"]


@pytest.mark.parametrize(
    "change",
    [
        _less_noise,
        _more_steps,
        _smaller_claim,
        _all_smaller,
        _no_charges,
        _replace_one,
        _nothing_measured,
        _reason_ignored,
        _other_unit,
        _no_sensitivity,
        _emptied_schema,
        _other_schema,
        _seeded,
        _no_delta,
    ],
    ids=lambda f: f.__name__.strip("_"),
)
def test_a_forged_certificate_is_refused(table: Path, change: Any) -> None:
    _tamper(table, change)
    with pytest.raises(lk.ReleaseError):
        lk.verify(table)


def test_a_changed_missing_or_added_file_is_refused(table: Path) -> None:
    (table / "extra.txt").write_text("x")
    with pytest.raises(lk.ReleaseError, match="extra.txt"):
        lk.verify(table)
    (table / "extra.txt").unlink()
    (table / ".hidden").write_text("x")
    with pytest.raises(lk.ReleaseError, match="hidden"):
        lk.verify(table)
    (table / ".hidden").unlink()
    content = (table / "data.csv").read_bytes()
    (table / "data.csv").write_bytes(content[:-1] + b"9")
    with pytest.raises(lk.ReleaseError, match="changed"):
        lk.Release.load(table)
    (table / "data.csv").unlink()
    with pytest.raises(lk.ReleaseError, match="lacks data.csv"):
        lk.verify(table)


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up half way leaves nothing, and what was paid for is kept."""
    data = lk.read(table_rows(50), table_schema())
    out = tmp_path / "place" / "release"

    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(_write, "make_card", full)
        with pytest.raises(lk.ReleaseError, match="No space left"):
            lk.distill(data, METHOD, lk.Budget(1.0), out=out)
    assert list(out.parent.iterdir()) == []
    lk.distill(data, METHOD, lk.Budget(1.0), out=out)
    [account] = lk.Ledger().accounts()
    assert len(account.runs) == 1 and lk.verify(out).epsilon == pytest.approx(1.0)


def test_an_existing_release_is_replaced_only_by_force(table: Path) -> None:
    release = lk.Release.load(table)
    with pytest.raises(lk.ReleaseError, match="force=True"):
        release.save(table)
    release.save(table, force=True)
    assert lk.verify(table).epsilon == pytest.approx(1.0)
    assert [p.name for p in table.parent.iterdir()] == ["table"]
    (table.parent / "papers").mkdir()
    (table.parent / "papers" / "thesis.txt").write_text("mine")
    with pytest.raises(lk.ReleaseError, match="not a release"):
        release.save(table.parent / "papers", force=True)


def test_the_certificate_says_what_it_rests_on(table: Path) -> None:
    certificate = json.loads((table / "certificate.json").read_text())
    assert certificate["releasable"] and certificate["created"] == "2023-11-14"
    assert certificate["guarantee"]["unit_of_privacy"] == "one person"
    assert certificate["method"]["settings"]["features"] == TINY["features"]
    assert certificate["noise"]["entropy"].startswith("256 bits")
    assert certificate["assumptions"] and certificate["limits"] and certificate["papers"]
    assert math.isclose(certificate["accounting"]["epsilon"], 1.0, rel_tol=1e-9)


def test_non_private_releases_say_so(tmp_path: Path) -> None:
    out = tmp_path / "bare"
    data = lk.read(table_rows(50), table_schema())
    lk.distill(data, METHOD, lk.Budget(math.inf), out=out, non_private=True, check=False)
    assert math.isinf(lk.verify(out).epsilon)
    assert "Not for release" in (out / "README.md").read_text()
    [account] = lk.Ledger().accounts()
    assert account.spent == 0 and account.runs[0].status == "never released"


def test_class_shares_of_a_sample_are_the_noisy_ones(table: Path) -> None:
    """P11: the noisy class histogram is used everywhere, never the true one."""
    release = lk.Release.load(table)
    drawn = release.sample(10_000)["ill"].value_counts(normalize=True)
    shares = dict(zip(release.schema.classes, release.source.class_weights, strict=True))
    for value, share in shares.items():
        assert drawn.get(value, 0.0) == pytest.approx(share, abs=1e-4)


def test_estimated_releases_verify_and_their_thresholds_cannot_be_dropped(tmp_path: Path) -> None:
    columns = {c.name: c for c in table_schema().columns}
    columns["income"] = lk.Numeric(name="income", outer=(-1e4, 1e4))
    columns["town"] = lk.Category(name="town", most=5)
    schema = table_schema(columns=tuple(columns.values()))
    for adjacency in ("add-remove", "replace-one"):
        out, budget = tmp_path / adjacency, lk.Budget(1.0, 1e-5, adjacency)
        lk.distill(lk.read(table_rows(150), schema), METHOD, budget, out=out)
        assert lk.verify(out).cost.threshold == pytest.approx(0.025 * 1e-5)

    def drop(certificate: dict) -> None:
        for charge in certificate["charges"]:
            charge["threshold_delta"] = 0.0

    _tamper(out, drop)
    with pytest.raises(lk.ReleaseError):
        lk.verify(out)


@pytest.mark.parametrize("change", [{"rows": np.ones(3)}, {"mean embedding": np.ones((900, 900))}])
def test_measurements_that_nobody_paid_for_are_refused(
    table: Path, change: dict[str, np.ndarray]
) -> None:
    """Another name, or more numbers under a name than its charge measured."""
    path = table / "measurements.npz"
    with np.load(path) as file:
        np.savez(path, **(dict(file) | change))
    _reseal(table)
    with pytest.raises(lk.ReleaseError, match="no charge pays for"):
        lk.verify(table)
