"""Laws of certificates: each field says what was done, and none that claims something can be changed."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import reseal
from helpers import TINY, folder_bytes, table_rows, table_schema

import limbeck as lk
from limbeck.accounting import Charge, cost
from limbeck.ledger import Ledger
from limbeck.privacy import Histogram, Noise, Question
from limbeck.release import arithmetic as _arithmetic
from limbeck.release import certificate as _certificate
from limbeck.release import recompute
from limbeck.release.questions import check_questions
from limbeck.release.second_opinion import check_second_opinion

TOLD = {
    "created", "not_releasable_because", "trust_model", "assumptions", "limits", "papers", "machine",
    "software", "engine", "public_files", "shares", "method.settings_source", "method.public_seed",
    "method.rows_seed", "method.redistilled_from", "method.package.version", "method.settings", "noise.discrete gaussian",
    "noise.discrete laplace", "noise.permute-and-flip", "noise.sums", "noise.generator",
    "check.statement", "check.results.columns", "signature",
}  # fmt: skip
"""Fields in words, or of facts that no arithmetic can contradict (`verify --deep` may: settings and seeds; of a
signature `verify` says that it cannot be checked);
all others claim something."""
ANOTHER_METHOD = ("method.name", "method.version", "method.package.name")
"""Changed, they name a method that is not known: nothing is called verified then."""


def _leaves(part: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(part, dict) and part:
        for name, inner in part.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(part, list) and part:
        for number, inner in enumerate(part):
            yield from _leaves(inner, (*path, number))
    else:
        yield path, part


def _others(value: Any) -> list[Any]:
    """Values of the same kind, larger and smaller, and one of another kind."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        return [value + 1, value * 3 + 2, "x"]
    if isinstance(value, float):
        return [value * 1.05 + 1e-9, value * 0.9 - 1e-9]
    if isinstance(value, str):
        return [value + "x", ""]
    return [1, "x"]


def _dotted(path: tuple[Any, ...]) -> str:
    return ".".join(str(step) for step in path if not isinstance(step, int))


def test_no_field_of_a_certificate_can_be_changed_unnoticed(sealed: Path) -> None:
    """Every leaf, one at a time: refused by the arithmetic or by the questions of the method."""
    whole = json.loads((sealed / "certificate.json").read_text())
    schema = lk.Schema.load(sealed / "schema.toml")
    recompute(whole)
    check_questions(whole, schema, lk.DPMERF)
    unnoticed, tried = [], 0
    for path, value in _leaves(whole):
        dotted = _dotted(path)
        if any(dotted == told or dotted.startswith(told + ".") for told in TOLD):
            continue
        for other in _others(value):
            changed = copy.deepcopy(whole)
            place = changed
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = other
            tried += 1
            try:
                recompute(changed)
                check_questions(changed, schema, lk.DPMERF)
            except (
                lk.ReleaseError,
                TypeError,
                AttributeError,
            ):  # `verify` says all of them in words
                continue
            if dotted not in ANOTHER_METHOD:
                unnoticed.append((path, value, other))
    assert not unnoticed and tried > 200


def test_each_file_that_was_changed_is_named(sealed: Path, tmp_path: Path) -> None:
    for name in folder_bytes(sealed):
        folder = Path(shutil.copytree(sealed, tmp_path / name.replace("/", "-")))
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(bytes(content))
        with pytest.raises(lk.ReleaseError) as refused:
            lk.verify(folder)
        assert name in str(refused.value) or name == "SHA256SUMS"
    folder = Path(shutil.copytree(sealed, tmp_path / "another"))
    text = (folder / "schema.toml").read_text().replace("max = 100", "max = 120")
    (folder / "schema.toml").write_text(text)
    reseal(folder)
    for questions in (True, False):  # by arithmetic alone, too
        with pytest.raises(lk.ReleaseError, match=r"schema\.toml"):
            lk.verify(folder, questions=questions)


def test_a_charge_cannot_be_stated_twice(sealed: Path) -> None:
    """One that the method asks once, listed cheaply and then again."""
    whole = json.loads((sealed / "certificate.json").read_text())
    whole["charges"].append(dict(whole["charges"][-1]))
    with pytest.raises(lk.ReleaseError, match="same name"):
        check_questions(whole, lk.Schema.load(sealed / "schema.toml"), lk.DPMERF)


def test_an_exact_curve_that_is_wrong_is_contradicted() -> None:
    charge = Charge(name="a", sensitivity=1.0, coordinates=1, noise_multiplier=2.0, steps=3)
    price = cost([charge], lk.Budget(10.0))
    check_second_opinion([charge], price)
    assert price.exact is not None
    for factor in (0.99, 1.01):
        wrong = replace(price, epsilon=price.epsilon * factor, exact=price.exact * factor)
        with pytest.raises(lk.ReleaseError, match="contradict"):
            check_second_opinion([charge], wrong)


# ---- what was done ---------------------------------------------------------------------------

EPSILON = lk.Budget(1.0, 1e-5)
RUNS: dict[str, dict[str, Any]] = {
    "plain": {},
    "seeded": {"seed": 3},
    "law": {"noise": Noise.from_seed(5, law=True)},
    "unpaid": {"unpaid": "the ranges"},
    "noiseless": {"budget": lk.Budget(float("inf")), "non_private": True},
    "replace-one": {"budget": lk.Budget(1.0, 1e-5, "replace-one")},
}


@pytest.mark.parametrize("name", RUNS)
def test_a_certificate_says_what_was_done(name: str, tmp_path: Path) -> None:
    told = {"budget": EPSILON} | RUNS[name]
    noise = told.get("noise")
    if noise is not None:
        told["noise"] = Noise.from_seed(5, law=True)
    data = lk.read(table_rows(60), table_schema())
    budget = told.pop("budget")
    book = Ledger(tmp_path / "ledger.sqlite")
    found = lk.distill(data, lk.DPMERF(**TINY), budget, ledger=book, **told).certificate
    seeded = name in ("seeded", "law")
    assert found["noise"]["seeded"] is seeded
    assert found["noise"]["entropy"] == (
        "a seed" if seeded else "256 bits from the operating system"
    )
    words = {
        "seeded": ["seeded"], "law": ["seeded", "law mode"], "unpaid": ["settings were read"],
        "noiseless": ["epsilon is infinite"],
    }.get(name, [])  # fmt: skip
    reasons = found["not_releasable_because"]
    assert len(reasons) == len(words)
    assert all(r.startswith(w) for r, w in zip(reasons, words, strict=True))
    assert found["releasable"] is (not words)
    assert found["guarantee"]["adjacency"] == budget.adjacency
    private = name != "noiseless"
    assert found["guarantee"]["epsilon"] == (budget.epsilon if private else "infinity")
    [account] = book.accounts()
    booked = [c.facts() for c in account.runs[0].charges]
    assert found["charges"] == booked and account.runs[0].private is private
    assert all((c["noise_multiplier"] > 0) is private for c in found["charges"])
    assert (account.spent > 0) is private


def test_what_was_not_carried_out_is_not_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method that leaves a planned question out gets no certificate, cheaper or not."""
    measure = lk.DPMERF.measure
    data = lk.read(table_rows(40), table_schema())

    def lazy(self: Any, private: Any, **told: Any) -> Any:
        answers = measure(self, private, **told)
        private._asked.popitem()
        return answers

    monkeypatch.setattr(lk.DPMERF, "measure", lazy)
    with pytest.raises(RuntimeError, match="planned"):
        lk.distill(data, lk.DPMERF(**TINY), EPSILON, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_float_sums_are_certified_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What `Private` says of the sums that it took in floating point stands in the certificate."""
    data, told = lk.read(table_rows(40), table_schema()), []
    for exact in (True, False):
        monkeypatch.setattr(Question, "exact", lambda *_, exact=exact: exact)
        book = Ledger(tmp_path / f"{exact}.sqlite")
        made = lk.distill(data, lk.DPMERF(**TINY), EPSILON, ledger=book)
        sums = made.certificate["noise"]["sums"]
        assert set(sums) == {c["name"] for c in made.certificate["charges"]}
        told.append(set(sums.values()))
    assert told == [{_certificate.EXACT_SUM}, {_certificate.FLOAT_SUM}]


def test_measurements_that_nobody_paid_for_are_never_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method that adds an array to what it measured: nothing is written."""
    made = lk.DPMERF.distill

    def more(self: Any, *given: Any, **told: Any) -> Any:
        product = made(self, *given, **told)
        return replace(product, measurements={**product.measurements, "rows": np.arange(3.0)})

    monkeypatch.setattr(lk.DPMERF, "distill", more)
    data, book = lk.read(table_rows(40), table_schema()), Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(lk.ReleaseError, match="'rows' that no charge pays for"):
        lk.distill(data, lk.DPMERF(**TINY), EPSILON, out=tmp_path / "r", ledger=book)
    assert not (tmp_path / "r").exists()


class Counts(Histogram):
    """A kind of question that somebody else brings."""


def test_a_certificate_names_whose_questions_were_asked() -> None:
    plan = lk.plan(lk.DPMERF(**TINY), table_schema(), EPSILON)
    assert _certificate._brought(plan) == []
    other = replace(plan.questions[0], question=Counts(name="class counts", bins=3))
    (told,) = _certificate._brought(replace(plan, questions=(other, *plan.questions[1:])))
    assert "of the kind Counts" in told and __name__.split(".")[0] in told


def test_a_check_publishes_no_more_than_was_paid_for(sealed: Path) -> None:
    whole = json.loads((sealed / "certificate.json").read_text())
    states = whole["check"]["results"]["columns"]
    states["another column"] = dict(states["age"])
    with pytest.raises(lk.ReleaseError, match="not what its charges pay for"):
        recompute(whole)


def test_accountants_that_contradict_each_other_are_told() -> None:
    charge = Charge(name="a", sensitivity=1.0, coordinates=1, noise_multiplier=2.0, steps=3)
    price = cost([charge], lk.Budget(10.0))
    _arithmetic._compare_accountants([charge], price)
    for wrong in (price.pld * 0.9, price.pld * 3 + 1):
        with pytest.raises(lk.ReleaseError, match="contradict each other"):
            _arithmetic._compare_accountants([charge], replace(price, rdp=wrong))


def test_the_first_assumption_tells_of_a_look(sealed: Path) -> None:
    schema = table_schema()
    plan = lk.plan(lk.DPMERF(**TINY), schema, EPSILON)
    told = []
    for seen in ("no", "without noise"):
        check = {"seen": seen, "statement": "x", "charges": [], "epsilon": None}
        made = _certificate.make_certificate(
            plan, plan.charges, schema, seeded=False, law=False, source="defaults", public_seed=0,
            check=check | {"delta": None, "results": None},
        )  # fmt: skip
        told.append(made["assumptions"][0])
    assert told[0] != told[1] and "but for the look" in told[1].replace("\n", " ")


def test_the_secret_is_nowhere_in_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = hashlib.sha256(b"a secret").digest()
    data = lk.read(table_rows(40), table_schema())
    out = tmp_path / "r"
    lk.distill(data, lk.DPMERF(**TINY), EPSILON, out=out, noise=Noise(secret=secret))
    pieces = [secret[at : at + 8] for at in range(0, 32, 8)] + [secret[::-1][:8]]
    words = {form for p in pieces for form in (p, p.hex().encode())}
    words |= {str(int.from_bytes(secret, order)).encode() for order in ("little", "big")}
    for name, content in folder_bytes(out).items():
        assert not [w for w in words if w in content], name
    with np.load(out / "measurements.npz", allow_pickle=False) as file:
        assert set(file) == {c["name"] for c in lk.verify(out).certificate["charges"]} - {
            "column states"
        }
