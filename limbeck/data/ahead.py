"""Work on several things at once, in threads, while the results keep their order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

THREADS = min(4, os.cpu_count() or 1)
"""Batches of rows that are worked on at once: each takes memory of its own."""

In = TypeVar("In")
Out = TypeVar("Out")


def in_order(function: Callable[[In], Out], items: Iterable[In]) -> Generator[Out]:
    """A function's results, in the order of the items, of which a few are worked on ahead."""
    waiting: deque[Future[Out]] = deque()
    with ThreadPoolExecutor(THREADS) as pool:  # leaving waits for what is under way
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > THREADS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
