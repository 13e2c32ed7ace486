"""What was asked (charges), what it costs (epsilon three ways), and how much noise a budget buys.

A charge describes one planned measurement completely: mechanism, sensitivity, noise, sampling,
steps. It is what the ledger books and the certificate shows, and all that epsilon is computed
from. dp-accounting interprets charges as PLD and RDP events, always under add/remove; a ledger of
Gaussians alone also has an exact answer, and then that is the epsilon we claim.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import dp_accounting
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from ..errors import LimbeckError
from .budget import Budget
from .grid_slack import distance

PURE = ("discrete laplace", "permute-and-flip")
"""Mechanisms with an epsilon of their own, and no delta."""
MECHANISMS = ("discrete gaussian", "gaussian", *PURE)
ORDERS = tuple(
    [1.25, 1.5, 1.75] + [x / 2 for x in range(4, 40)] + list(range(20, 257, 4)) + [512, 1024]
)
"""Renyi orders; wide enough for epsilons from 0.05 to 50."""
GRIDS = (1e-3, 1e-4)
"""Widths, in epsilon, of the privacy losses that PLD tells apart while noise is searched for. The last one is
dp-accounting's own, and decides; the first takes a tenth of its time, and is dearer by a hair."""
MOST_EPSILON = 700.0
"""Epsilon up to which e^epsilon is a number; beyond it the slack is more than any delta all the same."""
WHOLE_ORDERS = [order for order in ORDERS if order >= 2 and order == int(order)]
"""Those with a closed form under sampling: quick, for a first guess."""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One measurement: everything its privacy cost depends on."""

    name: str
    mechanism: str = "discrete gaussian"
    sensitivity: float
    """Largest change that one record can make, in the norm of the mechanism (L2; Laplace: L1;
    permute-and-flip: of each utility)."""
    noise_multiplier: float = math.nan
    """Scale of the noise divided by the sensitivity: standard deviation, or Laplace's scale; of
    a choice 1 / epsilon."""
    coordinates: int
    """Numbers measured in a step: the discrete Gaussian's slack grows with their root."""
    sampling: float | None = None
    """Probability with which a record enters a step (Poisson); None: every record does."""
    steps: int = 1
    threshold_delta: float = 0.0
    """Probability that a value only one record holds is published (estimated categories)."""

    @property
    def gaussian(self) -> bool:
        return self.mechanism in ("discrete gaussian", "gaussian") and self.sampling is None

    @property
    def pure(self) -> bool:
        """Whether each step is epsilon-private with no delta: epsilon = 1 / noise_multiplier."""
        return self.mechanism in PURE

    @property
    def priced(self) -> bool:
        """Whether the noise is known already."""
        return self.noise_multiplier >= 0  # not NaN

    @property
    def noise(self) -> float:
        """Scale of the noise in the units of the measurement."""
        return self.noise_multiplier * self.sensitivity

    def event(self, *, renyi: bool = False) -> dp_accounting.DpEvent:
        """The charge in dp-accounting's words, for its PLD or its RDP accountant."""
        if self.mechanism not in MECHANISMS:
            raise LimbeckError(
                f"A {self.mechanism} run is priced as a whole, which the rdp filter cannot do. Declare "
                'filter = "sum" or "gdp" in the schema\'s [lifetime].'
            )
        if self.noise_multiplier == 0:
            return dp_accounting.NonPrivateDpEvent()
        event: dp_accounting.DpEvent
        if self.pure:
            pure = 1.0 / self.noise_multiplier
            # Laplace noise on the whole numbers 0 and 1 tells them apart as well as anything pure can.
            # For RDP: pure epsilon implies epsilon^2 / 2 zero-concentrated (Bun and Steinke 2016).
            event = (
                dp_accounting.ZCDpEvent(pure * pure / 2)
                if renyi
                else dp_event.DiscreteLaplaceDpEvent(pure, 1)
            )
        else:
            event = dp_accounting.GaussianDpEvent(self.noise_multiplier)
            if self.sampling is not None:
                event = dp_accounting.PoissonSampledDpEvent(self.sampling, event)
        return event if self.steps == 1 else dp_accounting.SelfComposedDpEvent(event, self.steps)

    def facts(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Cost:
    """Epsilon of a list of charges at a delta, by every accountant that applies."""

    epsilon: float
    """What is claimed: exact for Gaussians, by PLD for the rest."""
    delta: float
    exact: float | None
    pld: float
    rdp: float
    slack: float
    """Part of delta spent on discrete against continuous noise."""
    threshold: float
    """Part of delta spent on thresholds of estimated categories."""
    basis: str = ""
    """What epsilon was computed by, where that is neither the exact curve nor PLD."""


def gaussian_mu(charges: Sequence[Charge]) -> float | None:
    """The mu of Gaussian differential privacy that the charges compose to; None if some are not."""
    if not all(c.gaussian for c in charges):
        return None
    if any(c.noise_multiplier == 0 for c in charges):
        return math.inf
    return math.sqrt(sum(c.steps / c.noise_multiplier**2 for c in charges))


def gaussian_bound(charges: Sequence[Charge]) -> float | None:
    """The mu of Gaussian differential privacy that the charges keep to, where pure ones are priced by the
    Gaussian that is no harder to tell apart; None if some are sampled or of another kind.

    A mechanism that is epsilon-private with no delta is mu-Gaussian at mu = 2 quantile(e^epsilon / (1 + e^epsilon)):
    its trade-off curve consists of two lines that meet where the Gaussian's, which is convex, meets the diagonal.
    """
    squares = 0.0
    for charge in charges:
        if charge.gaussian or charge.noise_multiplier == 0:
            mu = gaussian_mu([replace(charge, steps=1)])
        elif charge.pure:
            mu = pure_mu(1 / charge.noise_multiplier)
        else:
            return None
        squares += math.inf if mu is None else charge.steps * mu**2
    return math.sqrt(squares)


def pure_mu(epsilon: float) -> float:
    """The mu of Gaussian differential privacy that pure epsilon-privacy implies.

    >>> round(pure_mu(0.1), 4)
    0.1253
    """
    return -2 * float(ndtri(1 / (1 + math.exp(min(epsilon, MOST_EPSILON)))))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Exact delta of the Gaussian mechanism (Balle and Wang 2018, theorem 8).

    >>> round(gaussian_delta(1 / 3.7306, 1.0) * 1e5, 3)
    1.0
    """
    # exp(epsilon) times a tiny probability, kept in logarithms against overflow.
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Exact epsilon of a mu-Gaussian-DP mechanism at delta."""
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    top = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1
    return float(brentq(lambda e: gaussian_delta(mu, e) - delta, 0.0, top, xtol=1e-12))


@functools.lru_cache(maxsize=256)
def mu_for(epsilon: float, delta: float) -> float:
    """The largest mu that (epsilon, delta) allows.

    >>> round(1 / mu_for(1.0, 1e-5), 4), round(1 / mu_for(10.0, 1e-5), 5)
    (3.7306, 0.49989)
    """
    low, high = 1e-9, 2 * math.sqrt(2 * epsilon) + 1
    return float(brentq(lambda m: gaussian_delta(m, epsilon) - delta, low, high, xtol=1e-14))


def slack(charges: Sequence[Charge], epsilon: float) -> float:
    """Delta spent on discrete noise being priced as continuous: 1 + exp(epsilon) times the distance
    between both runs as wholes."""
    if not math.isfinite(epsilon):
        return 0.0
    discrete = [c for c in charges if c.mechanism == "discrete gaussian" and c.noise_multiplier > 0]
    return (1 + math.exp(min(epsilon, MOST_EPSILON))) * distance(
        sum(c.steps * c.coordinates for c in discrete)
    )


def removable_noise(charges: Sequence[Charge]) -> list[str]:
    """Names of charges whose noise can be taken off again: Box-Muller in float64 (`gaussian`), as
    once used for gradients. Pairs of its numbers share a radius, and the grid of floating-point
    numbers shows through. Such charges are still priced, but the price is not what was kept to.
    """
    return [c.name for c in charges if c.mechanism == "gaussian" and c.noise_multiplier > 0]


def thresholds(charges: Sequence[Charge]) -> float:
    return sum(c.threshold_delta for c in charges)


def cost(charges: Sequence[Charge], budget: Budget) -> Cost:
    """Epsilon of executed charges at the budget's delta.

    Slack and thresholds are taken from delta first; what is left prices the mechanisms. The slack
    is that of the budget's epsilon, which bounds the true one.
    """
    return _cost(tuple(charges), budget)


@functools.lru_cache(maxsize=64)  # a PLD of sampled charges takes up to some seconds
def _cost(charges: tuple[Charge, ...], budget: Budget) -> Cost:
    lost, cut = slack(charges, budget.epsilon), thresholds(charges)
    rest = budget.delta - lost - cut
    if any(c.noise_multiplier == 0 for c in charges):
        return Cost(math.inf, budget.delta, math.inf, math.inf, math.inf, lost, cut)
    if rest <= 0:
        raise _delta_too_small(budget, lost + cut)
    pld, rdp = PLDAccountant(), RdpAccountant(list(ORDERS))
    with without_warnings():
        for charge in charges:
            pld.compose(charge.event())
            rdp.compose(charge.event(renyi=True))
        by_pld = float(pld.get_epsilon(rest)) if charges else 0.0
        by_rdp = float(rdp.get_epsilon(rest)) if charges else 0.0
    mu = gaussian_mu(charges)
    exact = None if mu is None else gaussian_epsilon(mu, rest)
    return Cost(by_pld if exact is None else exact, budget.delta, exact, by_pld, by_rdp, lost, cut)


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Of an order whose series does not converge dp-accounting warns, and leaves it out: the bound
    holds, and users can do nothing about it. Only messages of the thread that asked are dropped."""
    asking = threading.get_ident()

    def wanted(record: logging.LogRecord) -> bool:
        return record.thread != asking or "_compute_log_a_frac" not in record.getMessage()

    logger = logging.getLogger("absl")
    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)


def _delta_too_small(budget: Budget, needed: float) -> LimbeckError:
    return LimbeckError(
        f"Delta {budget.delta:g} is smaller than what the grid and thresholds need ({needed:.2g}). "
        "Choose a larger delta, a smaller epsilon or fewer features."
    )


def calibrate(requests: Sequence[Charge], shares: Sequence[float], budget: Budget) -> list[Charge]:
    """Noise for several measurements, adaptive ones too, that together cost the budget.

    Shares divide the squared mu: a measurement of share s gets noise 1/sqrt(s) times that of one
    that had the budget to itself. A charge with a pure price keeps it; a choice without one gets
    epsilon for mu, by which many picks add up to the same curve.

    >>> one = Charge(name="a", sensitivity=1.0, coordinates=1)
    >>> [round(c.noise_multiplier, 3) for c in calibrate([one, one], [1, 1], Budget(1.0))]
    [5.276, 5.276]
    """
    return list(_calibrated(tuple(requests), tuple(shares), budget))


@functools.lru_cache(maxsize=64)
def _calibrated(
    requests: tuple[Charge, ...], shares: tuple[float, ...], budget: Budget
) -> list[Charge]:
    if removable_noise([replace(r, noise_multiplier=1.0) for r in requests]):
        raise RuntimeError("noise in floating point can be removed: plan a discrete gaussian")
    for request in requests:
        if request.mechanism == "discrete laplace" and not request.priced:
            raise RuntimeError(
                f"'{request.name}': Laplace noise is not calibrated; state its price"
            )
    if not budget.private:
        return [replace(r, noise_multiplier=0.0) for r in requests]
    total = sum(shares)

    def scaled(factor: float) -> list[Charge]:
        return [
            replace(r, noise_multiplier=_multiplier(r, s / total / factor**2))
            for r, s in zip(requests, shares, strict=True)
        ]

    lost = slack(scaled(1.0), budget.epsilon) + thresholds(requests)
    if lost >= budget.delta:
        raise _delta_too_small(budget, lost)
    if all(r.gaussian for r in requests):
        return scaled(1.0 / mu_for(budget.epsilon, budget.delta - lost))

    def epsilon_of(accountant: PLDAccountant | RdpAccountant, factor: float) -> float:
        with without_warnings():
            for charge in scaled(factor):
                accountant.compose(charge.event(renyi=isinstance(accountant, RdpAccountant)))
            return float(accountant.get_epsilon(budget.delta - lost))

    def roughly(factor: float) -> float:
        return epsilon_of(RdpAccountant(WHOLE_ORDERS), factor)

    try:  # RDP takes a fraction of PLD's time and is nearly right
        factor = _search(roughly, budget.epsilon, tolerance=1e-2)
    except LimbeckError:  # what PLD can price may be too dear for RDP
        factor = 1.0
    for width in GRIDS:

        def closely(factor: float, width: float = width) -> float:
            return epsilon_of(PLDAccountant(value_discretization_interval=width), factor)

        factor = _search(closely, budget.epsilon, start=factor)
    return scaled(factor)


def _multiplier(request: Charge, mu_squared: float) -> float:
    """Noise at which a request takes its part of the squared mu."""
    if request.pure and request.priced:
        return request.noise_multiplier
    if request.sampling is None:
        return math.sqrt(request.steps / mu_squared)
    # The central limit of Poisson-sampled Gaussians: it only sets how noise is divided among
    # measurements; epsilon itself always comes from the accountants.
    return 1 / math.sqrt(math.log1p(mu_squared / (request.steps * request.sampling**2)))


def _search(
    epsilon_of: Callable[[float], float],
    target: float,
    *,
    start: float = 1.0,
    tolerance: float = 2e-4,
) -> float:
    """A noise factor whose epsilon is within the target, by at most the tolerance's part of it."""
    low = high = last = None  # factors with their epsilons: too little noise, enough, the last
    factor, aim = start, target * (1 - tolerance / 2)
    for turn in range(200):
        now = factor, epsilon_of(factor)
        if now[1] > target:
            low = now
        elif now[1] >= target * (1 - tolerance):
            return factor
        else:
            high = now
        if low and high:
            if high[0] - low[0] <= tolerance * high[0] / 10:
                return high[0]
            # A power law through both; where the curve is none, the middle.
            inside = _meets(low, high, aim) if turn % 4 < 3 else 0.0
            middle = (low[0] + high[0]) / 2
            factor = inside if low[0] < inside < high[0] else middle
        elif high and factor < 1e-3:
            return factor  # fixed charges alone: there is no noise to choose
        elif factor > 1e6:
            break
        else:
            further = _meets(last, now, aim) if last else factor * now[1] / aim
            factor = min(max(further, factor / 2), factor * 2)
            if factor == now[0]:
                factor *= 2.0 if low else 0.5
        last = now
    raise LimbeckError("No amount of noise meets this budget; the fixed charges exceed it.")


def _meets(one: tuple[float, float], two: tuple[float, float], target: float) -> float:
    """The factor at which a power law through two factors with their epsilons meets a target."""
    if not (min(one[1], two[1]) > 0 and max(one[1], two[1]) < math.inf and one[1] != two[1]):
        return two[0] * (2.0 if two[1] > target else 0.5)
    power = math.log(two[0] / one[0]) / math.log(two[1] / one[1])
    return two[0] * (target / two[1]) ** power
