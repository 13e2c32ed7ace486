"""Chunks of one shape: what is appended never shows."""

from __future__ import annotations

import numpy as np
import pytest

from limbeck.chunks import in_chunks, padded


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 9])
def test_chunks_answer_as_one_call_would(rows: int) -> None:
    first, second = np.arange(2.0 * rows).reshape(rows, 2), np.arange(rows)
    shapes = set()

    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        shapes.add((a.shape, b.shape))
        return a + b[:, None]

    made = in_chunks(function, first, second, size=4)
    assert np.array_equal(made, first + second[:, None]) and made.shape == (rows, 2)
    assert shapes == {((4, 2), (4,))}


def test_padding_appends_a_value_and_no_more_than_is_missing() -> None:
    assert padded(np.array([1, 2]), 4, with_value=-1).tolist() == [1, 2, -1, -1]
    assert padded(np.array([1, 2]), 2).tolist() == [1, 2]
