"""Scores that may be published: counts of right and wrong predictions, measured with noise and paid for.

A classifier is trained on the released rows alone, which is free. What it says about each real test
row is counted through `Private`, and the charge is booked to the data set those rows come from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..accounting import Budget, Charge
from ..errors import LimbeckError, ReleaseError, positive
from ..ledger import Ledger, paid_run, randomness
from ..methods import AbstractInquiry
from ..outside import place_outside, write_outside
from ..planning import plan
from ..privacy import Asked, Histogram, Noise, Private
from ..progress import Progress
from ..release import (
    Release,
    Verdict,
    certificate_digest,
    make_certificate,
    recompute,
    schema_check_section,
)
from ..schema import Schema
from .internal import real_rows, released_data
from .learner import learn

ANSWERS, COUNTS = "right and wrong", "counts"
ANSWER_SHARE = 0.5
"""Of the budget, for the two numbers that accuracy is made of: a sum of many noisy counts is poor."""
DRAWS = 2_000
"""Draws of noise from which the spread of a figure is found."""
LIMITS = (
    "The certificate proves what was claimed and that it adds up, not that the software ran unmodified.",
    "The counts hold noise; figures made of them hold it too, as their noise_spread says.",
    "The figures are about the test rows that were counted, and about this one classifier.",
)


@dataclass(frozen=True, kw_only=True)
class ScoreCounts(AbstractInquiry):
    """How often a classifier trained on a release says what, by the true class.

    Privacy:
        Two histograms: a test row counts as right or wrong, and in the one cell of its true class
        and of what is said about it, under add/remove of one row. Discrete Gaussian noise,
        calibrated jointly. Events: two Gaussians.
    """

    name: ClassVar[str] = "measured-scores"
    papers: ClassVar[tuple[str, ...]] = ()

    release: str
    """Digest of the certificate of the release that the classifier learned from."""
    classifier: str
    bins: int = 20
    """For two classes: parts into which the second one's chance is cut, for the ROC curve."""

    def __post_init__(self) -> None:
        positive(bins=self.bins)
        if self.bins % 2:
            raise LimbeckError(f"Expected an even number of bins, got {self.bins}.")

    def shape(self, classes: int) -> tuple[int, int]:
        """True classes by predicted classes, or for two classes by bins."""
        return classes, self.bins if classes == 2 else classes

    def questions(self, schema: Schema) -> list[Asked]:
        classes = len(schema.classes)
        if schema.target:
            raise LimbeckError(
                "Scores that may be published are counts of right and wrong predictions of a label; the target "
                f"'{schema.target.name}' is a number. Scores for your eyes only know it: `limbeck evaluate`."
            )
        if not schema.label or classes < 2:
            raise LimbeckError("Counting predictions needs a label with at least two classes.")
        cells = int(np.prod(self.shape(classes)))
        return [
            Asked(question=Histogram(name=ANSWERS, bins=2), share=ANSWER_SHARE),
            Asked(question=Histogram(name=COUNTS, bins=cells), share=1 - ANSWER_SHARE),
        ]

    def measure(self, private: Private, predictor: Any) -> tuple[np.ndarray, np.ndarray]:
        """Noisy numbers of wrong and right answers, and the noisy counts."""
        shape = self.shape(len(private.schema.classes))
        answers = private.ask(ANSWERS, Answered(predictor))
        counts = private.ask(COUNTS, Said(predictor, *shape))
        return answers.values, counts.values.reshape(shape)


class Answered(eqx.Module):
    """Whether a classifier is wrong (0) or right (1) about a row."""

    predictor: Any
    bins: int = eqx.field(static=True, default=2)

    @property
    def chunk(self) -> int:
        return getattr(self.predictor, "chunk", 0)

    def __call__(self, rows: Array, labels: Array) -> Array:
        return (jnp.argmax(self.predictor(rows), axis=1) == labels).astype(jnp.int32)


class Said(eqx.Module):
    """The cell that a row counts in: its class, and what a classifier says about it."""

    predictor: Any
    classes: int = eqx.field(static=True)
    kinds: int = eqx.field(static=True)

    @property
    def bins(self) -> int:
        return self.classes * self.kinds

    @property
    def chunk(self) -> int:
        return getattr(self.predictor, "chunk", 0)

    def __call__(self, rows: Array, labels: Array) -> Array:
        outputs = self.predictor(rows)
        said = jnp.argmax(outputs, axis=1)
        if self.classes == 2:
            chance = jnp.clip((1 + outputs[:, 1] - outputs[:, 0]) / 2, 0.0, 1.0)
            said = jnp.clip((chance * self.kinds).astype(jnp.int32), 0, self.kinds - 1)
        return labels * self.kinds + said


@dataclass(frozen=True, kw_only=True)
class MeasuredScores:
    """Noisy counts with what follows from them, and their certificate. They may be published."""

    certificate: dict[str, Any]
    answers: np.ndarray
    """Noisy numbers of wrong and of right answers."""
    counts: np.ndarray
    """Noisy counts: true classes by predicted ones, or for two classes by bins of the chance."""

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """Each figure's value, and the standard deviation that the noise gives it."""
        noise = {c["name"]: Charge(**c).noise for c in self.certificate["charges"]}
        return figures_of(self.answers, self.counts, noise[ANSWERS], noise[COUNTS])

    def facts(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "format": "limbeck measured scores",
            "certificate": self.certificate,
            "answers": {"wrong": float(self.answers[0]), "right": float(self.answers[1])},
            "counts": self.counts.tolist(),
            "confusion": confusion(self.counts).tolist(),
            "roc": roc(self.counts) if len(self.counts) == 2 else None,
            "figures": self.figures,
        }

    def save(self, path: str | Path) -> Path:
        """Write the scores with their certificate as JSON."""
        text = json.dumps(self.facts(), indent=2, allow_nan=False) + "\n"
        write_outside(path, text, "scores")
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> MeasuredScores:
        """Read what `save` wrote, and check it: see `verify_scores`."""
        try:
            facts = json.loads(Path(path).read_text(encoding="utf-8"))
            if facts["format"] != "limbeck measured scores":
                raise ValueError("another format")
            answers = [facts["answers"][name] for name in ("wrong", "right")]
            scores = cls(
                certificate=facts["certificate"],
                answers=np.asarray(answers, np.float64),
                counts=np.asarray(facts["counts"], np.float64),
            )
            _check(scores, facts["figures"])
            return scores
        except OSError as error:
            raise ReleaseError(f"Cannot read {path}: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise ReleaseError(
                f"{path} is not a release and does not hold measured scores: {error}."
            ) from None


def measure_scores(
    release: Release | str | Path,
    test: object,
    budget: Budget | float,
    *,
    out: str | Path | None = None,
    ledger: Ledger | None = None,
    seed: int | None = None,
    progress: Progress = lambda phase, done: None,
    noise: Noise | None = None,
    pay_again: bool = False,
) -> MeasuredScores:
    """Count, with noise, what a classifier trained on a release says about real test rows.

    Args:
        release: From `limbeck.distill`, or its folder.
        test: Real rows that it was not made from, as `evaluate` takes them.
        budget: Charged to the data set that the schema names, like any release. Epsilon alone will
            do: delta then suits the declared rows.
        out: File to write the scores to, before the run's protected state is erased.
        ledger: Where spending is booked; by default the user's own ledger.
        seed: Reproducible noise, for tests and benchmarks. Stamped "not for release".
        progress: Called with a phase and a fraction done.
        noise: Instead of a seed: the randomness that a test of the software brings.
        pay_again: Give up an unfinished run of the same kind, which stays booked, and pay anew.

    Raises:
        BudgetExceeded: The data set's lifetime budget does not allow it; nothing was counted.
    """
    release = Release.of(release)
    if out is not None:
        place_outside(out, "scores")  # before anything is paid
    tested = real_rows(test, release)
    budget = Budget.of(budget, tested.schema.units)
    if not budget.private:
        raise LimbeckError("Scores without noise are what `limbeck evaluate` gives anyway.")
    predictor, name = learn(released_data(release))
    inquiry = ScoreCounts(release=certificate_digest(release.certificate), classifier=name)
    planned = plan(inquiry, tested.schema, budget)
    drawn = randomness(seed, noise)
    with paid_run(
        planned, tested, ledger=ledger, noise=drawn, pay_again=pay_again, progress=progress
    ) as paid:
        answers, counts = inquiry.measure(paid.private, predictor)
        certificate = make_certificate(
            planned,
            paid.private.executed(),
            tested.schema,
            seeded=paid.noise.seeded,
            law=paid.noise.law,
            source="fixed beforehand",
            public_seed=0,
            check=schema_check_section(planned, paid.looks),
        )
        scores = MeasuredScores(
            certificate={**certificate, "limits": list(LIMITS)}, answers=answers, counts=counts
        )
        if out is not None:
            scores.save(out)
    return scores


def is_measured(path: str | Path) -> bool:
    """Whether a file says that it holds measured scores, and not internal ones."""
    try:
        facts = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(facts, dict) and facts.get("format") == "limbeck measured scores"


def verify_scores(path: str | Path) -> Verdict:
    """Recompute epsilon and all figures of a file of measured scores."""
    scores = MeasuredScores.load(path)
    return Verdict(cost=recompute(scores.certificate), certificate=scores.certificate)


def _check(scores: MeasuredScores, stated: Mapping[str, Mapping[str, float]]) -> None:
    """Refuse a file whose charge is not that of its counts, or whose figures are not theirs."""
    recompute(scores.certificate)
    guarantee = scores.certificate["guarantee"]
    budget = Budget(float(guarantee["epsilon"]), guarantee["delta"], guarantee["adjacency"])
    charges = {c["name"]: c for c in scores.certificate["charges"]}
    sizes = {ANSWERS: scores.answers.size, COUNTS: scores.counts.size}
    if len(scores.certificate["charges"]) != 2 or set(charges) != set(sizes):
        raise ReleaseError("The certificate does not pay for these counts.")
    for name, size in sizes.items():
        asked = Histogram(name=name, bins=charges[name]["coordinates"]).measured()[0]
        whole = replace(asked, sensitivity=float(budget.sensitivity_factor)).facts()
        free = ("noise_multiplier", "coordinates")  # the budget's, and held against the counts here
        if any(charges[name][key] != value for key, value in whole.items() if key not in free):
            raise ReleaseError("The certificate does not pay for these counts.")
        if charges[name]["coordinates"] < budget.sensitivity_factor * size:
            raise ReleaseError("There are more counts than the certificate pays for.")
    for name, figure in scores.figures.items():
        if not math.isclose(stated[name]["value"], figure["value"], abs_tol=1e-9):
            raise ReleaseError(f"The stated {name} does not follow from the counts.")


def confusion(counts: np.ndarray) -> np.ndarray:
    """True by predicted classes; for two classes the bins below and above a half."""
    if len(counts) > 2:
        return counts
    half = counts.shape[1] // 2
    return np.stack([counts[:, :half].sum(axis=1), counts[:, half:].sum(axis=1)], axis=1)


def roc(counts: np.ndarray) -> dict[str, list[float]]:
    """The ROC curve at the edges of the bins, from noisy counts held within what counts can be."""
    kept = np.maximum(counts, 0.0)
    tails = np.cumsum(kept[:, ::-1], axis=1)
    rates = tails / np.maximum(tails[:, -1:], 1e-9)
    return {
        "false_positive_rate": [0.0, *map(float, rates[0])],
        "true_positive_rate": [0.0, *map(float, rates[1])],
    }


def figures_of(
    answers: np.ndarray, counts: np.ndarray, answer_noise: float, count_noise: float
) -> dict[str, dict[str, float]]:
    """Figures that follow from noisy counts, with the spread that fresh noise gives them."""
    exact = _figures(answers, counts)
    rng = np.random.default_rng(0)
    again = [
        _figures(
            answers + answer_noise * rng.standard_normal(answers.shape),
            counts + count_noise * rng.standard_normal(counts.shape),
        )
        for _ in range(DRAWS)
    ]
    return {
        name: {"value": value, "noise_spread": float(np.std([a[name] for a in again]))}
        for name, value in exact.items()
    }


def _figures(answers: np.ndarray, counts: np.ndarray) -> dict[str, float]:
    total, table = float(answers.sum()), confusion(counts)
    by_class = np.clip(np.diag(table) / np.maximum(table.sum(axis=1), 1.0), 0.0, 1.0)
    figures = {
        "rows": total,
        "accuracy": float(np.clip(answers[1] / max(total, 1.0), 0.0, 1.0)),
        "balanced accuracy": float(by_class.mean()),
    }
    if len(counts) == 2:
        curve = roc(counts)
        x, y = (np.asarray(curve[k]) for k in ("false_positive_rate", "true_positive_rate"))
        figures["ROC AUC"] = float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2))
    return figures
