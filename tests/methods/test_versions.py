"""A method whose questions change gets a new version, so that older releases are not held against it.

Where this test fails, the same settings now ask something else: raise the method's `version` and put the
digest here that is shown.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest
from helpers import image_schema, table_schema

import limbeck as lk
from limbeck.privacy import Unit

QUESTIONS = {
    "marginals": (5, "1d9e638558682b1c"),
    "measure-once": (2, "f7127acee6927f85"),
    "dp-merf": (1, "65b92f1a0ca7a746"),
    "dp-hp": (1, "1f91de5b2e8f53f9"),
    "dp-ntk": (1, "0563aa73c3538f1f"),
    "g-pate": (2, "2f7ca03ee872690f"),
    "dp-kip": (5, "36daa0dfcfa07539"),
    "kip": (1, "d3c2797b5ac8dbde"),
    "ndpdc": (1, "5d2b407dff197a4e"),
    "dp-mepf": (1, "e1da3768c467c896"),
    "pearl": (1, "691e19bf3c39eb16"),
    "psg": (1, "3388cab1aa8d0cf4"),
    "dp-gan": (1, "b842bc6374c42dac"),
    "dp-sinkhorn": (1, "c1cce07f9e813038"),
    "dp-cgan": (1, "b842bc6374c42dac"),
    "pate-gan": (1, "e3aa9e933f260f4c"),
    "gs-wgan": (1, "d8105f2c833e0529"),
    "datalens": (1, "4fa27f874f8626df"),
    "aim": (1, "0a114dc736546702"),
    "mst": (1, "fdbc61548a76c346"),
    "privbayes": (1, "67ba63d306ad409c"),
    "linear-head": (1, "73c248a5e5b38482"),
    "dpdm": (1, "f19dadfe673f05ba"),
    "dp-sgd": (2, "f7c86a4b70a38f4b"),
    "full-mmd": (1, "d3c2797b5ac8dbde"),
}  # fmt: skip
"""Version of each method, and digest of what it asks about a small table and about small images."""


def asked(method: type[lk.methods.AbstractMethod]) -> str:
    """Digest of every charge that the method plans with the settings it comes with."""
    told: list[object] = []
    for small in (table_schema(), image_schema(16)):
        schema = replace(small, rows=60_000)
        try:
            questions = [asked.question for asked in method().questions(schema)]
        except lk.LimbeckError:
            told.append("refused")
            continue
        charges = [charge for question in questions for charge in question.charges(Unit())]
        told.append([charge.facts() | {"noise_multiplier": 0.0} for charge in charges])
    assert told != ["refused"] * 2, method.name
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", lk.METHODS)
def test_questions_change_only_with_the_version(name: str) -> None:
    method = lk.METHODS[name]
    assert (method.version, asked(method)) == QUESTIONS[name]


def test_another_question_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before, questions = asked(lk.DPMERF), lk.DPMERF.questions
    monkeypatch.setattr(lk.DPMERF, "questions", lambda self, schema: questions(self, schema)[:1])
    assert asked(lk.DPMERF) != before
