"""Rows from which a distilled set begins, and at which it is compared with the teacher.

They are made of prototypes (cluster means, which carry noise already), or of nothing but the schema.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import affine_transform

from ...schema import Schema
from .prototypes import Prototypes, coarse_basis, match_histogram

IMAGE_FALLOFF = 1.5
"""Exponent with which amplitudes of random images fall with the frequency."""
MERGING_ROUNDS = 20
"""Rounds of k-means that merge prototypes into fewer rows."""


def rows_from_prototypes(
    schema: Schema, prototypes: Prototypes, per_class: int, rng: np.random.Generator
) -> np.ndarray:
    """As many rows per class as wanted, (classes, per_class, slots): prototypes merged into fewer,
    or repeated with slight deformations."""
    chosen = [
        _merged(schema, own, size, per_class)
        if per_class < len(own)
        else _with_copies(schema, own[np.argsort(-size)], per_class, rng)
        for own, size in zip(prototypes.rows, prototypes.sizes, strict=True)
    ]
    return np.stack(chosen)


def with_deformed_copies(
    schema: Schema, rows: np.ndarray, per_class: int, rng: np.random.Generator
) -> np.ndarray:
    """More rows of each class, (classes, per_class, slots): the given ones, then deformed copies."""
    return np.stack([_with_copies(schema, own, per_class, rng) for own in rows])


def deformed_prototypes(
    schema: Schema, prototypes: Prototypes, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Rows (count, slots) such as the classes may hold: each a random prototype, drawn by the size of
    its cluster and slightly deformed."""
    rows, sizes = prototypes.rows.reshape(-1, schema.slots), prototypes.sizes
    chosen = rng.choice(len(rows), count, p=sizes.ravel() / sizes.sum())
    return np.stack([_deformed(schema, rows[i], rng) for i in chosen])


def random_images(schema: Schema, count: int, rng: np.random.Generator) -> np.ndarray:
    """Rows (count, slots) that show nothing but vary as images do: coarse parts more than fine ones.
    From the schema alone."""
    assert schema.image
    height, width, channels = schema.image.shape
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    amplitude = np.maximum(frequency, 1 / max(height, width)) ** -IMAGE_FALLOFF
    white = rng.standard_normal((count, channels, height, width))
    field = np.real(np.fft.ifft2(amplitude * np.fft.fft2(white)))
    field /= field.std(axis=(1, 2, 3), keepdims=True)
    brightness = rng.uniform(0, 0.6, (count, 1, 1, 1))
    images = np.clip(brightness + 0.4 * field, 0, 1)
    return images.transpose(0, 2, 3, 1).reshape(count, -1)


def sharpened(prototypes: Prototypes) -> Prototypes:
    """Prototypes whose values have the measured histograms: a mean of many images is blurred, and
    has too many middling values."""
    sharp = [
        [match_histogram(row, share) for row, share in zip(rows, shares, strict=True)]
        for rows, shares in zip(prototypes.rows, prototypes.histograms, strict=True)
    ]
    return prototypes._replace(rows=np.asarray(sharp))


def _merged(schema: Schema, rows: np.ndarray, sizes: np.ndarray, count: int) -> np.ndarray:
    """Fewer rows: weighted k-means of the prototypes, begun at the largest and those far from it."""
    coarse = rows @ coarse_basis(schema)
    picked = [int(sizes.argmax())]
    while len(picked) < count:
        apart = ((coarse[:, None] - coarse[picked]) ** 2).sum(axis=2).min(axis=1)
        picked.append(int((apart * sizes).argmax()))
    centres = coarse[picked]
    for _ in range(MERGING_ROUNDS):
        nearest = ((coarse[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        weights = (nearest == np.arange(count)[:, None]) * sizes
        total = weights.sum(axis=1, keepdims=True)
        centres = np.where(total > 0, weights @ coarse / np.maximum(total, 1e-9), centres)
    merged = weights @ rows / np.maximum(total, 1e-9)
    return np.where(total > 0, merged, rows[picked])


def _with_copies(
    schema: Schema, rows: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """The rows as they are, then deformed copies of them, `count` in all."""
    copies = rows[np.resize(np.arange(len(rows)), count)].copy()
    for i in range(len(rows), count):
        copies[i] = _deformed(schema, copies[i], rng)
    return copies


def _deformed(schema: Schema, row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An image turned by up to 8 degrees, scaled by up to 8 per cent and shifted by up to a pixel; a
    table's row with a little noise."""
    if not schema.image:
        return np.clip(row + 0.02 * rng.standard_normal(len(row)), 0, 1)
    height, width, channels = schema.image.shape
    angle, scale = rng.uniform(-0.14, 0.14), rng.uniform(0.92, 1.08)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) / scale
    middle = np.array([height - 1, width - 1]) / 2
    shift = middle - turn @ middle + rng.uniform(-1, 1, 2)
    image = row.reshape(height, width, channels)
    moved = [
        affine_transform(image[..., c], turn, shift, order=1, mode="nearest")
        for c in range(channels)
    ]
    return np.stack(moved, axis=2).reshape(-1)
