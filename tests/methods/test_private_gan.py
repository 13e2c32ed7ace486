"""DP-GAN and DP-CGAN: what their discriminators measure, and that generators follow them."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers import table_schema

import limbeck as lk
from limbeck.methods.adversarial.discriminator import FlatDiscriminator
from limbeck.methods.adversarial.private_gan import AbstractPrivateGAN

BUDGET = lk.Budget(10.0, 1e-5)


def two_heaps() -> tuple[lk.Schema, pd.DataFrame]:
    """Ill rows have large numbers, the others small ones."""
    schema = lk.Schema(
        dataset="heaps",
        rows=2000,
        lifetime=lk.Lifetime(epsilon=20.0, delta=1e-3, filter="sum"),
        columns=(
            lk.Numeric(name="dose", min=0.0, max=1.0),
            lk.Category(name="ill", values=("no", "yes"), label=True),
        ),
    )
    rng = np.random.default_rng(0)
    ill = rng.random(2000) < 0.5
    dose = np.clip(rng.normal(np.where(ill, 0.8, 0.2), 0.05), 0, 1)
    return schema, pd.DataFrame({"dose": dose, "ill": np.where(ill, "yes", "no")})


def test_generated_rows_move_to_their_heap(tmp_path) -> None:
    schema, rows = two_heaps()
    method = lk.DPCGAN(steps=150, batch=200, discriminator_hidden=(16,), code=2, hidden=(16,),
                  discriminator_rate=1e-2, learning_rate=1e-2, discriminator_steps=2)  # fmt: skip
    release = lk.distill(
        lk.read(rows, schema), method, BUDGET, out=tmp_path / "release", seed=0,
        ledger=lk.Ledger(tmp_path / "ledger.sqlite"),
    )  # fmt: skip
    made = release.sample(500, seed=1)
    means = made.groupby("ill")["dose"].mean()
    assert means["yes"] - means["no"] > 0.3


def test_a_step_costs_one_sampled_gaussian() -> None:
    schema, _ = two_heaps()
    asked = lk.DPCGAN(steps=7, batch=100).questions(schema)
    (counts,), (gradient,) = (a.question.measured() for a in asked)
    assert counts.sampling is None and gradient.sampling == 0.05 and gradient.steps == 7
    assert gradient.sensitivity == 1.0


@pytest.mark.parametrize("method", [lk.DPGAN(batch=100), lk.DPCGAN(batch=100)])
def test_every_number_of_the_discriminator_is_noised(method: AbstractPrivateGAN) -> None:
    """The authors' program of DP-GAN left out the last array, and bounded weights instead of gradients."""
    schema, _ = two_heaps()
    judge, (_, asked) = method.discriminator(schema), method.questions(schema)
    assert asked.question.size == len(judge.start(jax.random.key(0)))
    (gradient,) = (c for c in lk.plan(method, schema, BUDGET).charges if c.sampling is not None)
    assert gradient.sensitivity == method.clip and gradient.noise > 0.3 * method.clip


@pytest.mark.parametrize("loss", ["logistic", "wasserstein"])
def test_generated_rows_weigh_no_more_than_real_ones(loss: str) -> None:
    judge = FlatDiscriminator(width=3, classes=2, hidden=(4,), loss=loss)
    numbers = judge.start(jax.random.key(0))
    assert numbers.shape == (judge.size,)
    rows, labels = jax.random.normal(jax.random.key(1), (5, 3)), jnp.arange(5) % 2
    whole = judge.generated_gradient(numbers, rows, labels, 1e9)
    each = [
        jax.grad(judge.generated_loss)(numbers, r, c) for r, c in zip(rows, labels, strict=True)
    ]
    assert np.asarray(whole) == pytest.approx(np.mean(each, axis=0), abs=1e-6)
    assert (
        float(np.linalg.norm(judge.generated_gradient(numbers, rows, labels, 1e-3))) <= 1e-3 + 1e-9
    )


def test_bounded_weights() -> None:
    limited = lk.DPGAN(weight_limit=0.1).limited(np.array([-3.0, 0.05, 2.0]))
    assert np.asarray(limited).tolist() == pytest.approx([-0.1, 0.05, 0.1])


def test_what_is_refused() -> None:
    schema = table_schema()
    with pytest.raises(lk.LimbeckError, match="approximate number of rows"):
        lk.plan(lk.DPCGAN(), replace(schema, rows=None), BUDGET)
    with pytest.raises(lk.LimbeckError, match="smaller batch"):
        lk.plan(lk.DPCGAN(batch=10**6), schema, BUDGET)
    with pytest.raises(lk.LimbeckError, match="average"):
        lk.DPGAN(average=1.0)
