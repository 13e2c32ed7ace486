"""What `verify` answers: a forged certificate is refused by the name of what was changed, and what
cannot be vouched for is neither refused nor called verified."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from forging import Change, both, put, reseal, tamper
from helpers import FEW, TINY, table_rows, table_schema

import limbeck as lk
from limbeck.accounting import Charge, cost
from limbeck.release import recompute
from limbeck.run import distilling as _distill

OLD = Path(__file__).parents[1] / "oracles" / "format1"


def no_longer_seeded(certificate: dict[str, Any]) -> None:
    certificate["noise"]["seeded"] = False
    certificate["releasable"] = True
    certificate["not_releasable_because"] = []


FORGED: dict[str, tuple[Change, str]] = {
    "a looser accountant's name": (put("accounting", "basis", value="PLD"), "basis"),
    "a smaller epsilon by PLD": (put("accounting", "epsilon_pld", value=0.5), "epsilon_pld"),
    "a smaller exact epsilon": (put("accounting", "epsilon_exact", value=0.5), "epsilon_exact"),
    "a smaller claim": (put("guarantee", "epsilon", value=0.9), "more than the 0.9 claimed"),
    "a smaller delta": (put("guarantee", "delta", value=1e-7), "claims epsilon"),
    "an unknown mechanism": (put("charges", 0, "mechanism", value="magic"), "mechanism 'magic'"),
    "no steps": (put("charges", 0, "steps", value=0), "steps = 0"),
    "another unit in words": (put("guarantee", "unit_of_privacy", value="a town"), "unit of priv"),
    "a person as unit": (put("unit", "kind", value="person"), "a person with at most 1 rows"),
    "more rows of a unit": (put("unit", "rows_at_most", value=9), "a row with at most 9 rows"),
    "an id column": (put("unit", "id_column", value="age"), "'age'"),
    "wider neighbours": (put("guarantee", "neighbours", value="ten rows"), "ten rows"),
    "another adjacency": (put("guarantee", "adjacency", value="replace-one"), "neighbours"),
    "another data set": (put("data", "dataset", value="others"), "dataset"),
    "fewer declared rows": (put("data", "declared_rows", value=5), "declared_rows"),
    "another schema's digest": (put("data", "schema_sha256", value="0" * 64), "digest"),
    "other settings": (put("method", "settings", "features", value=8), "mean embedding"),
    "a reason taken away": (put("not_releasable_because", value=["law mode"]), "releasable"),
    "seeded, said of a run that was not": (put("noise", "seeded", value=True), "seeded = true"),
    "an unpaid check": (put("check", "charges", value=[]), "check"),
    "a check that was not": (put("check", "seen", value="no"), "check"),
    "a cheaper check": (put("check", "charges", 0, "noise_multiplier", value=1e3), "column states"),
    "a check with less noise": (put("check", "results", "noise", value=1.0), "results"),
    "a check of another kind": (put("check", "seen", value="perhaps"), "check.seen"),
    "an unknown field": (put("approved_by", value="NIST"), "approved_by"),
    "a newer layout": (put("version", value=3), "version 1 or 2"),
    "an older layout, to drop the method's version": (
        both(put("version", value=1), lambda c: c.pop("limits")), "limits",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_certificate_is_refused_by_what_was_changed(release: Path, name: str) -> None:
    change, told = FORGED[name]
    tamper(release, change)
    with pytest.raises(lk.ReleaseError) as refused:
        lk.verify(release)
    assert told in str(refused.value)


def test_every_section_and_field_must_be_there(sealed: Path) -> None:
    whole = json.loads((sealed / "certificate.json").read_text())
    recompute(whole)
    dropped = [(name,) for name in whole] + [
        (name, field)
        for name, part in whole.items()
        if isinstance(part, dict) and name not in ("shares", "software")
        for field in part
    ]
    assert len(dropped) > 60
    for path in dropped:
        changed = copy.deepcopy(whole)
        place = changed if len(path) == 1 else changed[path[0]]
        del place[path[-1]]
        with pytest.raises(lk.ReleaseError, match=f"no '({path[0]}.)?{path[-1]}'"):
            recompute(changed)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (put("charges", 0, "steps", value=10), "epsilon"),
        (put("charges", 0, "sampling", value=0.05), "epsilon"),
        (put("charges", 0, "noise_multiplier", value=9.0), "epsilon"),
        (put("accounting", "basis", value="exact Gaussian curve"), "basis"),
        (put("accounting", "epsilon_exact", value=0.9), "epsilon_exact"),
        (put("guarantee", "adjacency", value="replace-one"), "replace-one adjacency for Poisson"),
    ],
)  # fmt: skip
def test_fewer_steps_or_a_tighter_accountant_do_not_pass(
    gradients: dict[str, Any], change: Change, told: str
) -> None:
    assert recompute(gradients).epsilon <= 1.0
    changed = copy.deepcopy(gradients)
    change(changed)
    with pytest.raises(lk.ReleaseError, match=told):
        recompute(changed)


def test_fewer_steps_of_a_known_method_do_not_pass_even_if_all_figures_follow(
    release: Path,
) -> None:
    """A forger who computes well: every figure follows, but the method asks something else."""

    def change(certificate: dict[str, Any]) -> None:
        certificate["charges"] = certificate["charges"][:1]
        found = cost([Charge(**c) for c in certificate["charges"]], lk.Budget(1.0))
        from limbeck.release import accounting

        certificate["accounting"] = accounting(found)

    tamper(release, change)
    with pytest.raises(lk.ReleaseError, match="no charge pays for|mean embedding"):
        lk.verify(release)
    np.savez(release / "measurements.npz")
    reseal(release)
    with pytest.raises(lk.ReleaseError, match="class counts"):
        lk.verify(release)


@pytest.mark.parametrize(
    "change",
    [
        put("noise", "seeded", value=False),
        no_longer_seeded,
        both(no_longer_seeded, put("noise", "seeded", value=True)),
        both(put("noise", "seeded", value=False), put("noise", "entropy", value="256 bits from the operating system")),
    ],
)  # fmt: skip
def test_a_seeded_run_cannot_be_talked_into_one_that_is_not(tmp_path: Path, change: Change) -> None:
    data = lk.read(table_rows(50), table_schema())
    lk.distill(data, lk.DPMERF(**TINY), lk.Budget(1.0), out=tmp_path / "seeded", seed=3)
    assert lk.verify(tmp_path / "seeded").verified
    tamper(tmp_path / "seeded", change)
    with pytest.raises(lk.ReleaseError, match="seeded"):
        lk.verify(tmp_path / "seeded")


# ---- what is left open --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Mine(lk.DPMERF):
    """A user's own method, which limbeck has never heard of."""

    name: ClassVar[str] = "mine"


def test_a_users_own_method_adds_up_and_is_not_known(tmp_path: Path) -> None:
    data = lk.read(table_rows(50), table_schema())
    lk.distill(data, Mine(**TINY), lk.Budget(1.0), out=tmp_path / "mine")
    verdict = lk.verify(tmp_path / "mine")
    assert verdict.epsilon == pytest.approx(1.0) and not verdict.verified
    [words] = verdict.open
    assert "mine, version 1" in words and "not known here" in words
    assert verdict.certificate["method"]["package"] == {"name": Mine.__module__, "version": None}


def test_another_version_of_a_method_is_not_known(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The questions changed since: the release is not held against them."""
    monkeypatch.setattr(lk.DPMERF, "version", 2)
    monkeypatch.setattr(lk.DPMERF, "questions", lambda *_: [])
    verdict = lk.verify(release)
    assert verdict.epsilon == pytest.approx(1.0)
    assert "version 1, of limbeck) is not known here, only version 2" in verdict.open[0]


def test_a_method_of_the_same_name_from_elsewhere_is_not_known(release: Path) -> None:
    tamper(release, put("method", "package", "name", value="elsewhere"))
    assert "of elsewhere) is not known here" in lk.verify(release).open[0]


def test_a_signature_that_nobody_checks_is_not_vouched_for(release: Path) -> None:
    signed = {"algorithm": "ed25519", "public_key": "00", "value": "00"}
    tamper(release, put("signature", value=signed))
    assert lk.verify(release).open == ("it is signed, and this version does not check signatures",)


@pytest.mark.parametrize("name", ["dp-merf", "random-stopping", "dp-kip"])
def test_certificates_of_format_1_still_add_up(name: str) -> None:
    verdict = lk.verify(OLD / name)
    assert verdict.epsilon == pytest.approx(1.0, rel=2e-4) and not verdict.verified
    assert "version 1 does not say" in verdict.open[-1]
    removable = [words for words in verdict.open if "noise that can be removed" in words]
    assert len(removable) == (name == "dp-kip")


@pytest.mark.parametrize(
    "change",
    [
        put("charges", 0, "steps", value=1),
        put("charges", 0, "noise_multiplier", value=9.0),
        put("accounting", "epsilon", value=0.5),
        put("guarantee", "epsilon", value=0.9),
        put("noise", "seeded", value=True),
        lambda c: c.pop("limits"),
    ],
)  # fmt: skip
def test_certificates_of_format_1_cannot_be_forged_either(tmp_path: Path, change: Change) -> None:
    folder = Path(shutil.copytree(OLD / "dp-kip", tmp_path / "old"))
    tamper(folder, change)
    with pytest.raises(lk.ReleaseError):
        lk.verify(folder)


# ---- before anything is published ---------------------------------------------------------------


@pytest.mark.parametrize("forged", ["charge", "price", "measurement"])
def test_distill_publishes_nothing_that_verify_would_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forged: str
) -> None:
    """A run that measured something else, priced it wrongly, or lets out what nobody paid for."""
    make, run = _distill.make_certificate, lk.DPMERF.run

    def wrong(*given: Any, **settings: Any) -> dict[str, Any]:
        certificate = make(*given, **settings)
        if forged == "charge":
            certificate["charges"][1]["sensitivity"] = 0.5
        if forged == "price":
            certificate["accounting"]["epsilon"] = 0.5
        return certificate

    def chatty(self: Any, private: Any, **settings: Any) -> Any:
        product = run(self, private, **settings)
        also = {"rows": np.ones(3)} if forged == "measurement" else {}
        return replace(product, measurements={**product.measurements, **also})

    monkeypatch.setattr(_distill, "make_certificate", wrong)
    monkeypatch.setattr(lk.DPMERF, "run", chatty)
    data = lk.read(table_rows(50), table_schema())
    with pytest.raises(lk.ReleaseError):
        lk.distill(data, lk.DPMERF(**TINY), lk.Budget(1.0), out=tmp_path / "place" / "release")
    assert not (tmp_path / "place").exists() or not any((tmp_path / "place").iterdir())


# ---- nothing outside the folder -----------------------------------------------------------------


def test_a_release_never_leads_out_of_its_folder(release: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.npz"
    shutil.copy(release / "measurements.npz", outside)
    (release / "measurements.npz").unlink()
    (release / "measurements.npz").symlink_to(outside)
    for read in (lk.verify, lk.Release.load):
        with pytest.raises(lk.ReleaseError, match=r"measurements.npz is a link"):
            read(release)
    (release / "measurements.npz").unlink()
    shutil.copy(outside, release / "measurements.npz")
    assert lk.verify(release).verified
    (release / "more").symlink_to(tmp_path, target_is_directory=True)
    for read in (lk.verify, lk.Release.load):
        with pytest.raises(lk.ReleaseError, match=r"more is a link"):
            read(release)


@pytest.mark.parametrize("name", ["../outside.npz", "/etc/hostname", "a/../../outside.npz"])
def test_a_list_of_sums_does_not_name_files_elsewhere(
    release: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "outside.npz").write_bytes(b"x")
    sums = release / "SHA256SUMS"
    sums.write_text(sums.read_text() + f"{hashlib.sha256(b'x').hexdigest()}  {name}\n")
    with pytest.raises(lk.ReleaseError, match="lacks"):
        lk.verify(release)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_no_file_of_a_release(release: Path) -> None:
    os.mkfifo(release / "pipe")
    with pytest.raises(lk.ReleaseError, match="neither a file nor a folder"):
        lk.verify(release)


@pytest.mark.parametrize("name", ["measurements.npz", "generator.npz"])
def test_no_pickle_is_ever_loaded(release: Path, name: str) -> None:
    """A file of arrays may hold pickled objects, and a pickle runs any code it likes."""

    class Trap:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(release / "sprung"),))

    np.savez(release / name, **{"class counts": np.asarray([Trap()], dtype=object)})
    reseal(release)
    with pytest.raises(lk.ReleaseError):
        lk.Release.load(release)
    if name == "measurements.npz":
        with pytest.raises(lk.ReleaseError):
            lk.verify(release)
    assert not (release / "sprung").exists()


def test_infinite_epsilon_is_verified_as_such(tmp_path: Path) -> None:
    data = lk.read(table_rows(60), table_schema())
    out = tmp_path / "bare"
    lk.distill(
        data,
        lk.KIP(**{k: v for k, v in FEW.items() if k == "per_class"}),
        lk.Budget(math.inf),
        out=out,
        non_private=True,
    )
    verdict = lk.verify(out)
    assert math.isinf(verdict.epsilon) and verdict.open == ()
