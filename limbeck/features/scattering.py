"""Scattering features of images (Mallat 2012), two scales and eight orientations, in plain JAX.

Wavelet, modulus, wavelet, modulus, low-pass: 1 + 16 + 64 = 81 averages on a grid four times
coarser than the image. Morlet wavelets, borders, scales and the order of channels are kymatio's
(J = 2, L = 8, order 2), so its published results carry over.

The pictures are small, so every Fourier transform is a dense matrix, and whatever is linear
between two moduli is three matrix products: to frequencies along the rows' axis; for each such
frequency, padding, filtering and subsampling along the other axis; and back. Inside, pictures
stand last: each product is a small matrix times (axis, everything else), and nothing is moved.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import LimbeckError, positive

ANGLES = 8
"""Number of wavelet orientations."""
CHANNELS = 1 + 2 * ANGLES + ANGLES**2
"""Number of coefficients at a place, for each channel of the image."""
BORDER = 4
"""Pixels added on each side by reflection."""
CHUNK_PIXELS = 32 * 36 * 36
"""Pixels worked on at once. Beyond this, time goes into moving memory."""
NORM_FLOOR = 1e-6
"""Norm below which features are not scaled up to norm 1: far below one grey level of one pixel."""
TWO_PI = 2 * 3.1415
"""Circumference of the unit circle, rounded as kymatio has it."""

Normalisation = Literal["none", "position", "group"]


class Wavelets(NamedTuple):
    """Picture -> wavelet coefficients, as products with three matrices."""

    analysis: Float[Array, "frequencies*parts height"]
    filters: Float[Array, "frequencies outputs inputs"]
    synthesis: Float[Array, "height frequencies*parts"]


class Lowpass(NamedTuple):
    """Picture -> averages on the coarse grid, along either axis."""

    rows: Float[Array, "coarse height"]
    columns: Float[Array, "coarse coarse width"]


class Scattering(eqx.Module):
    """Scattering coefficients of pictures given as rows of pixels (height, width, channels).

    `normalisation` puts 27 groups of three consecutive channels on one scale: "position"
    standardises the three values at each place (as in DP-KIP's published code), "group" all values of
    a group at once (group norm). `unit_norm` divides a row's features by their norm.

    >>> phi = Scattering(height=28, width=28)
    >>> phi.size, phi(jnp.ones((2, 784))).shape
    (3969, (2, 3969))
    """

    fine: Wavelets
    """Wavelets of the first scale, at every pixel."""
    coarse: Wavelets
    """Wavelets of the second scale, at every second pixel."""
    second: Wavelets
    """The same, of moduli, which carry their border with them."""
    lowpasses: tuple[Lowpass, ...]
    """Averages of the image, of moduli at every pixel, of moduli at every second pixel."""
    shape: tuple[int, int, int] = eqx.field(static=True)
    normalisation: str = eqx.field(static=True)
    unit_norm: bool = eqx.field(static=True)
    norm_bound: float = eqx.field(static=True)

    def __init__(
        self,
        *,
        height: int,
        width: int,
        channels: int = 1,
        normalisation: str = "none",
        unit_norm: bool = True,
    ) -> None:
        positive(height=height, width=width, channels=channels)
        if height % 4 or width % 4:
            raise LimbeckError(
                f"Expected a height and a width divisible by 4, got {height} x {width}."
            )
        if normalisation not in get_args(Normalisation):
            raise LimbeckError(
                f"Expected normalisation to be one of {get_args(Normalisation)}, "
                f"got {normalisation!r}."
            )
        banks = _bank(height, width)
        # float32, or float64 where the caller has enabled it.
        self.fine, self.coarse, self.second = (Wavelets(*map(jnp.asarray, b)) for b in banks[:3])
        self.lowpasses = tuple(Lowpass(*map(jnp.asarray, b)) for b in banks[3:])
        self.shape = height, width, channels
        self.normalisation = normalisation
        self.unit_norm = unit_norm
        largest = math.sqrt(self.size)  # standardised values: their mean square is at most one
        if normalisation == "none":
            largest = _bound(height, width) * math.sqrt(channels)
        self.norm_bound = 1.0 if unit_norm else largest

    @property
    def size(self) -> int:
        height, width, channels = self.shape
        return channels * CHANNELS * (height // 4) * (width // 4)

    @property
    def chunk(self) -> int:
        """Pictures worked on at once: 32 of 28 x 28."""
        height, width, _ = self.shape
        return max(1, CHUNK_PIXELS // ((height + 2 * BORDER) * (width + 2 * BORDER)))

    def scatter(
        self, images: Float[Array, "images height width"]
    ) -> Float[Array, "images 81 height/4 width/4"]:
        """The coefficients themselves, in kymatio's order.

        Many pictures go in chunks that fit the processor's cache (faster on two cores
        than all at once), and derivatives compute each chunk again, so that memory does
        not grow with the number of pictures.
        """
        count = len(images)
        chunks = -(-count // self.chunk)
        if chunks == 1:
            return self._scatter(images)
        if not chunks:
            height, width, _ = self.shape
            return jnp.zeros((0, CHANNELS, height // 4, width // 4), images.dtype)
        padded = jnp.pad(images, ((0, -count % chunks), (0, 0), (0, 0)))
        split = padded.reshape(chunks, -1, *images.shape[1:])
        again = jax.checkpoint(lambda x: self._scatter(x), prevent_cse=False)
        y = jax.lax.map(again, split)
        return y.reshape(-1, *y.shape[2:])[:count]

    def _scatter(self, images: Array) -> Array:
        x = jnp.moveaxis(images, 0, -1)
        first = _modulus(_filter(self.fine, x))
        coarse = _modulus(_filter(self.coarse, x))
        second = _modulus(_filter(self.second, first))
        averages = [
            _average(self.lowpasses[0], x)[:, :, None],
            _average(self.lowpasses[1], first),
            _average(self.lowpasses[2], coarse),
            # Angles of the second wavelet come before those of the first: swap them.
            _average(self.lowpasses[2], second).swapaxes(2, 3),
        ]
        rows, columns, count = *averages[0].shape[:2], len(images)
        flat = [a.reshape(rows, columns, -1, count) for a in averages]
        return jnp.concatenate(flat, axis=2).transpose(3, 2, 0, 1)

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        height, width, channels = self.shape
        pictures = rows.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)
        return self._normalise(self.scatter(pictures.reshape(-1, height, width)))

    def _normalise(self, y: Float[Array, "pictures 81 h w"]) -> Float[Array, "rows size"]:
        if self.normalisation != "none":
            groups = y.reshape(len(y), CHANNELS // 3, 3, y.shape[2] * y.shape[3])
            over = 2 if self.normalisation == "position" else (2, 3)
            centred = groups - groups.mean(over, keepdims=True)
            y = centred / jnp.sqrt((centred**2).mean(over, keepdims=True) + 1e-5)
        y = y.reshape(-1, self.size)
        if self.unit_norm:
            y = y / jnp.sqrt(jnp.maximum((y**2).sum(axis=1, keepdims=True), NORM_FLOOR**2))
        return y

    def derivative(self, row: Float[np.ndarray, " slots"]) -> Float[np.ndarray, "slots size"]:
        """The derivative at one row.

        Each coefficient has a path of its own, one angle of each wavelet, so going back along the paths takes
        a small part of the work of as many products with the derivative. In NumPy, whose products are
        twice as fast here as XLA's.
        """
        y, phases = _linearised(self, row)
        change = np.zeros((self.shape[0] * self.shape[1], len(y), *y.shape), y.dtype)
        for at in range(len(y)):
            change[:, at, at] = self._paths([np.asarray(phase[..., at]) for phase in phases])
        return np.asarray(_normalised(self, y, change.reshape(-1, *y.shape)))

    def _paths(self, phases: list[np.ndarray]) -> Float[np.ndarray, "pixels 81 h w"]:
        """What each pixel does to each coefficient of a picture whose moduli have these phases."""
        height, width, _ = self.shape
        fine, coarse, second = phases
        whole, first, last = map(_bumps, self.lowpasses)
        derivatives = np.empty((height, width, CHANNELS, *whole.shape[2:]), fine.dtype)
        derivatives[:, :, 0] = whole
        inner = []
        for angle in range(ANGLES):
            one, two = fine[..., angle, None, None], coarse[..., angle, None, None]
            derivatives[:, :, 1 + angle] = _filter_back(self.fine, angle, one * first[:, None])
            derivatives[:, :, 1 + ANGLES + angle] = _filter_back(
                self.coarse, angle, two * last[:, None]
            )
            paths = second[..., angle, :, None, None] * last[:, None, :, None]
            inner.append(_filter_back(self.second, angle, paths))
        between = np.stack(inner, axis=3)  # (height, width, first angle, second angle, h, w)
        for angle in range(ANGLES):
            at = 1 + (2 + angle) * ANGLES
            paths = fine[..., angle, None, None, None] * between[:, None, :, angle]
            derivatives[:, :, at : at + ANGLES] = _filter_back(self.fine, angle, paths)
        return derivatives.reshape(height * width, *derivatives.shape[2:])


@eqx.filter_jit
def _linearised(phi: Scattering, row: Any) -> tuple[Array, tuple[Array, ...]]:
    """Coefficients of a row's channels, (channels, 81, h, w), and phases of the moduli, channels last."""
    x = row.reshape(phi.shape)
    fine = _filter(phi.fine, x)
    parts = fine, _filter(phi.coarse, x), _filter(phi.second, _modulus(fine))
    return phi.scatter(jnp.moveaxis(x, 2, 0)), tuple(map(_phase, parts))


@eqx.filter_jit
def _normalised(phi: Scattering, y: Array, change: Any) -> Float[Array, "changes size"]:
    """What normalisation makes of changes of a row's coefficients."""

    def along(direction: Array) -> Array:
        return jax.jvp(phi._normalise, (y,), (direction,))[1].ravel()

    return jax.lax.map(along, change, batch_size=phi.chunk)


def _filter(
    bank: Wavelets, x: Float[Array, "height width ..."]
) -> Float[Array, "h 2 w angles ..."]:
    """x * psi, its real and imaginary part, for each angle, on the bank's grid."""
    rest = x.shape[2:]
    count, _, inputs = bank.filters.shape
    spectrum = (bank.analysis @ x.reshape(len(x), -1)).reshape(count, inputs, -1)
    filtered = (bank.filters @ spectrum).reshape(2 * count, -1)
    return (bank.synthesis @ filtered).reshape(len(bank.synthesis), 2, -1, ANGLES, *rest)


def _filter_back(
    bank: Wavelets, angle: int, parts: Float[np.ndarray, "h 2 w ..."]
) -> Float[np.ndarray, "height width ..."]:
    """The transpose of `_filter` for one angle."""
    analysis, filters, synthesis = map(np.asarray, bank)
    count, _, inputs = filters.shape
    mine = filters.reshape(count, -1, ANGLES, inputs)[:, :, angle]
    spectrum = (synthesis.T @ parts.reshape(len(parts), -1)).reshape(*mine.shape[:2], -1)
    filtered = mine.swapaxes(1, 2) @ spectrum
    picture = analysis.T @ filtered.reshape(len(analysis), -1)
    return picture.reshape(len(picture), -1, *parts.shape[3:])


@jax.custom_jvp
def _modulus(parts: Float[Array, "height 2 ..."]) -> Float[Array, "height ..."]:
    return jnp.sqrt(parts[:, 0] ** 2 + parts[:, 1] ** 2)


@_modulus.defjvp
def _modulus_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The derivative at 0 is taken as 0; the inner `where` keeps it from being 0 / 0."""
    (parts,), (change,) = primals, tangents
    return _modulus(parts), (_phase(parts) * change).sum(axis=1)


def _phase(parts: Float[Array, "height 2 ..."]) -> Float[Array, "height 2 ..."]:
    """The derivative of the modulus."""
    modulus = _modulus(parts)
    clear = modulus > 0
    return parts * jnp.where(clear, 1 / jnp.where(clear, modulus, 1), 0)[:, None]


def _average(low: Lowpass, x: Float[Array, "height width ..."]) -> Float[Array, "h w ..."]:
    along = (low.rows @ x.reshape(len(x), -1)).reshape(len(low.rows), x.shape[1], -1)
    return (low.columns @ along).reshape(*low.columns.shape[:2], *x.shape[2:])


def _bumps(low: Lowpass) -> Float[np.ndarray, "height width h w"]:
    """The weights of each average."""
    return np.einsum("ax,by->xyab", np.asarray(low.rows), np.asarray(low.columns[0]))


@functools.lru_cache(maxsize=8)
def _bank(height: int, width: int) -> tuple[tuple[np.ndarray, ...], ...]:
    """All matrices, in float64: three of `Wavelets`, three of `Lowpass`."""
    rows, columns = _reflection(height), _reflection(width)
    h, w = len(rows), len(columns)
    fine, coarse = _morlets(h, w, 0), _morlets(h, w, 1)
    wavelets = (
        _wavelets(fine, rows, columns, 1),
        _wavelets(coarse, rows, columns, 2),
        _wavelets(coarse, np.eye(h), np.eye(w), 2),
    )
    lowpasses = tuple(
        (a, np.broadcast_to(b, (len(a), *b.shape)))
        for a, b in (
            (_lowpass(h, 1) @ rows, _lowpass(w, 1) @ columns),
            (_lowpass(h, 1), _lowpass(w, 1)),
            (_lowpass(h, 2), _lowpass(w, 2)),
        )
    )
    return *wavelets, *lowpasses


def _bound(height: int, width: int) -> float:
    """A bound on the norm of the coefficients of one channel with values in [0, 1].

    Young's inequality along each path; a wavelet has mean 0, so half its range is all it sees.
    """
    h, w = height + 2 * BORDER, width + 2 * BORDER
    fine, coarse = (abs(_morlets(h, w, j)).sum(axis=(1, 2)) / 2 for j in (0, 1))
    full, sub = (
        abs(_lowpass(h, s)).sum(axis=1).max() * abs(_lowpass(w, s)).sum(axis=1).max()
        for s in (1, 2)
    )
    paths = [[full], full * fine, sub * coarse, sub * np.outer(fine, coarse).ravel()]
    return float(np.linalg.norm(np.concatenate(paths)) * math.sqrt(height * width / 16))


def _reflection(size: int) -> np.ndarray:
    """The matrix that adds the border."""
    return np.pad(np.eye(size), ((BORDER, BORDER), (0, 0)), mode="reflect")


def _morlets(h: int, w: int, scale: int) -> np.ndarray:
    """psi(u) = envelope(u) (exp(i xi.u) - K), with mean 0, periodic on (h, w), for each angle."""
    width, frequency, slant = 0.8 * 2**scale, 0.75 * np.pi / 2**scale, 4 / ANGLES
    y, x = np.arange(-2 * h, 3 * h)[:, None], np.arange(-2 * w, 3 * w)
    wavelets = []
    for step in range(ANGLES):
        angle = (ANGLES // 2 - 1 - step) * np.pi / ANGLES
        along = y * np.cos(angle) + x * np.sin(angle)
        across = x * np.cos(angle) - y * np.sin(angle)
        envelope = np.exp(-(along**2 + (slant * across) ** 2) / (2 * width**2))
        wave = envelope * np.exp(1j * frequency * along)
        wave, bump = (a.reshape(5, h, 5, w).sum(axis=(0, 2)) for a in (wave, envelope))
        wavelets.append((wave - bump * (wave.sum() / bump.sum())) * slant / (TWO_PI * width**2))
    return np.stack(wavelets)


def _wavelets(
    psi: np.ndarray, rows: np.ndarray, columns: np.ndarray, step: int
) -> tuple[np.ndarray, ...]:
    """Matrices of: add a border, convolve with psi's real and imaginary parts, keep each `step`-th.

    Keeping each second sample folds the frequencies k and k + h/2 into one.
    """
    h, w = psi.shape[1:]
    kept = h // step
    half = np.arange(kept // 2 + 1)
    k = half[:, None] + kept * np.arange(step)
    phase = 2 * np.pi / h * k[..., None] * np.arange(h)
    analysis = np.stack([np.cos(phase), -np.sin(phase)], axis=2) @ rows
    spectrum = np.fft.fft([psi.real, psi.imag], axis=2)[:, :, k] / step
    shift = (np.arange(0, w, step)[:, None] - np.arange(w)) % w
    t = spectrum[..., shift] @ columns  # (part, angle, half, fold, out, in), complex
    blocks = np.array([[t.real, -t.imag], [t.imag, t.real]])
    filters = np.einsum("dcpahfoi->hdpoafci", blocks)
    phase = 2 * np.pi / kept * np.arange(kept)[:, None] * half
    weight = np.where((half == 0) | (half == kept // 2), 1, 2) / kept
    synthesis = np.stack([weight * np.cos(phase), -weight * np.sin(phase)], axis=2)
    inputs = 2 * step * columns.shape[1]
    return (
        analysis.reshape(-1, rows.shape[1]),
        filters.reshape(len(half), -1, inputs),
        synthesis.reshape(kept, -1),
    )


def _lowpass(size: int, step: int) -> np.ndarray:
    """The matrix of: Gaussian low-pass of a signal known at each `step`-th sample, coarse grid, no border."""
    width = 0.8 * 2
    bump = np.exp(-(np.arange(-2 * size, 3 * size) ** 2) / (2 * width**2)).reshape(5, -1).sum(0)
    spectrum = np.fft.fft(bump / np.sqrt(TWO_PI * width**2))
    # At every second sample kymatio cuts the upper frequencies off: -size/4 <= k < size/4.
    kept = size // step
    spectrum = spectrum[(np.arange(kept) + kept // 2) % kept - kept // 2]
    kernel = np.fft.ifft(spectrum).real
    grid = 4 // step * np.arange(1, size // 4 - 1)
    return kernel[(grid[:, None] - np.arange(kept)) % kept]
