"""Laws of secrets, streams, coins and the sampler, by what they are made of and not by how often they fall."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import limbeck
from limbeck.data import Rows
from limbeck.privacy import Noise, Stream, discrete
from limbeck.privacy.poisson.sampling import Records

PACKAGE = Path(limbeck.__file__).parent


def test_a_secret_comes_whole_from_the_operating_system() -> None:
    """No half of it is another half, and none is constant: 8 bytes anywhere are there once."""
    secrets = [Noise().secret for _ in range(40)]
    assert all(len(secret) == 32 for secret in secrets)
    words = [secret[at : at + 8] for secret in secrets for at in range(0, 32, 8)]
    assert len(set(words)) == len(words)


def test_streams_differ_in_every_letter_of_their_purpose() -> None:
    secret, purpose = bytes(range(32)), "a measurement with a rather long name/17/batch"
    others = [purpose[:at] + "~" + purpose[at + 1 :] for at in range(len(purpose))]
    others += [purpose[:-1], purpose + " ", purpose + "/0"]
    seen = {Stream(secret, text).words(2).tobytes() for text in [purpose, *others]}
    changed = [bytes(b ^ (i == at) for i, b in enumerate(secret)) for at in range(32)]
    seen |= {Stream(other, purpose).words(2).tobytes() for other in changed}
    assert len(seen) == 1 + len(others) + 32


def test_parts_of_a_run_have_noise_of_their_own() -> None:
    for noise in (Noise(), Noise.from_seed(3, law=True)):
        parts = [noise.part("run 0"), noise.part("run 1")]
        parts.append(parts[0].part("run 1"))
        drawn = {part.stream("counts").words(4).tobytes() for part in [noise, *parts]}
        seeds = {part.public_seed("method") for part in [noise, *parts]}
        assert len(drawn) == len(seeds) == 4
        assert {(p.seeded, p.law) for p in parts} == {(noise.seeded, noise.law)}
        with pytest.raises(RuntimeError, match="cannot be drawn again"):
            noise.part("run 0")


def test_public_seeds_tell_nothing_of_the_secret() -> None:
    """A public seed is no piece of the secret, and every byte of the secret changes it."""
    secret = Noise().secret
    seed = Noise(secret=secret).public_seed("method")
    assert 0 <= seed < 2**31
    pieces = {int.from_bytes(secret[at : at + 4], "little") for at in range(29)}
    pieces |= {piece >> 1 for piece in pieces} | {piece & (2**31 - 1) for piece in pieces}
    assert seed not in pieces
    changed = [bytes(b ^ (i == at) for i, b in enumerate(secret)) for at in range(32)]
    assert len({Noise(secret=other).public_seed("method") for other in changed} | {seed}) == 33
    assert Noise(secret=secret).public_seed("rows") != seed


def test_words_of_a_stream_are_all_different() -> None:
    stream = Stream(bytes(32), "words")
    words = np.concatenate([stream.words(1000), stream.words(7), stream.words(1)])
    assert len(np.unique(words)) == 1008


# ---- the sampler -----------------------------------------------------------------------------


@pytest.mark.parametrize("group", range(4))
def test_every_coin_of_the_sampler_is_thrown(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table whose coins never show heads keeps nothing; where all do, everything is kept."""
    tables = discrete._coin_tables()
    all_heads = [(np.full_like(h, 2**64 - 1), np.full_like(low, 2**64 - 1)) for h, low in tables]
    tails = [(np.zeros_like(h), np.zeros_like(low)) for h, low in tables]
    monkeypatch.setattr(discrete, "_coin_tables", lambda: all_heads)
    assert len(discrete._propose(Stream(bytes(32), "coins"), 500)) == 500
    mixed = [tails[g] if g == group else all_heads[g] for g in range(4)]
    monkeypatch.setattr(discrete, "_coin_tables", lambda: mixed)
    assert len(discrete._propose(Stream(bytes(32), "coins"), 500)) == 0


class Scripted:
    """A stream whose words are given."""

    def __init__(self, *words: int) -> None:
        self._words: Iterator[int] = iter(words)

    def words(self, count: int) -> np.ndarray:
        return np.asarray([next(self._words) for _ in range(count)], np.uint64)


def test_zero_has_one_sign_and_all_else_two() -> None:
    heads = (0, 0, 0, 0)
    minus = 1 << 63
    assert discrete._propose(Scripted(0, 0, *heads), 1).tolist() == [0]
    assert discrete._propose(Scripted(0, minus, *heads), 1).tolist() == []
    assert discrete._propose(Scripted(0, minus | 5, *heads), 1).tolist() == [-5]
    assert discrete._propose(Scripted(0, 5, *heads), 1).tolist() == [5]


# ---- coins of records ------------------------------------------------------------------------


def _rows(cells: list[float], labels: list[int]) -> Rows:
    return Rows(np.asarray(cells, np.float32)[:, None], np.asarray(labels, np.int32))


def test_equal_records_have_coins_of_their_own() -> None:
    records = Records(_rows([1.0] * 200, [0] * 200), Noise.from_seed(0).stream("records"))
    assert 60 < len(records.heads(0.5, Noise.from_seed(0).stream("step"))) < 140


def test_records_that_differ_in_anything_have_other_coins() -> None:
    def name(cell: float, label: int) -> bytes:
        return Records(_rows([cell], [label]), Noise.from_seed(0).stream("records"))._names

    names = {name(cell, label) for cell in (0.0, 1.0, np.nan) for label in (-1, 0, 1)}
    assert len(names) == 9


def test_names_of_records_are_secret() -> None:
    """Who does not know the run's secret cannot know a record's coins."""
    rows = _rows([1.0, 2.0], [0, 1])
    one, two, again = (
        Records(rows, Noise.from_seed(seed).stream("records"))._names for seed in (0, 1, 0)
    )
    assert one == again and not {one[:16], one[16:]} & {two[:16], two[16:]}


# ---- no other randomness ---------------------------------------------------------------------


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_the_boundary_draws_from_nothing_else() -> None:
    """No room that guards rows knows another source of random numbers than the key stream."""
    known = {"random", "numpy.random", "uuid", "jax.random"}
    for file in sorted((PACKAGE / "privacy").rglob("*.py")):
        tree = ast.parse(file.read_text())
        assert not known & set(_imports(tree)), file
        called = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
        assert not [c for c in called if ".random." in c or c.endswith(("default_rng", "normal"))]


def test_no_array_is_ever_unpickled() -> None:
    """Every file of arrays is opened without pickles, and nothing else can load one."""
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text())
        names = set(_imports(tree))
        loaders = {"pickle", "cloudpickle", "joblib", "shelve", "marshal", "dill"}
        if file.name == "processes.py":  # messages among a run's own processes; nothing of a file
            loaders -= {"pickle"}
        assert not loaders & names, file
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.load", "numpy.load"):
                told = {k.arg: ast.unparse(k.value) for k in node.keywords}
                assert told.get("allow_pickle") == "False", f"{file}:{node.lineno}"
            if isinstance(node, ast.Call):
                assert not ast.unparse(node.func).endswith(("read_pickle", ".eqx", "exec", "eval_"))
