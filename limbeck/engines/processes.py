"""Sums by several processes under `jax.distributed`, each with a part of the rows.

The first process asks, draws noise and pays; the others sum what they are sent. Work and partial sums travel as
bytes through JAX's own coordinator, which is inside the trust boundary as the processes are. A process that dies
is noticed by its silence.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..data import Dataset
from ..errors import LimbeckError
from ..privacy import RowAccess, State, Work
from ..schema import Schema
from .parts import keyed_sum, merged, processor_text, row_digests, summed_part, versions
from .remote import RemoteDataset, RemoteEngine

PIECE_BYTES = 1 << 20
"""Bytes of one message: what the coordinator takes at once."""
BEAT_SECONDS = 1.0
"""How often a process shows that it is there."""
SILENCE_SECONDS = 20.0
"""After how much silence a process is taken for dead."""


def together(part: Dataset) -> Dataset:
    """The rows of all processes, for the first one: its own part, and those that the others `serve`."""
    if part.schema.person:
        raise LimbeckError(
            "[person]: a person's rows may lie in several processes, which do not exchange rows. Use "
            "Spark, or one process."
        )
    wire = Wire()
    return RemoteDataset(part.schema, part._source, partial(ProcessEngine, part, wire))


def serve(part: Dataset) -> None:
    """What every process but the first does: it sums its own part as it is asked, until all is done."""
    wire, by_schema = Wire(), {part.schema.digest: part}
    stop = threading.Event()
    threading.Thread(target=wire.beat, args=(stop,), daemon=True).start()
    try:
        while (order := wire.next_order()) is not None:
            kind, software, *content = order
            try:
                if software != versions():
                    raise LimbeckError(f"process {wire.me} has other versions than the first one")
                schema = content[0] if kind == "digest" else content[0].schema
                own = by_schema.setdefault(schema.digest, part.with_schema(schema))
                answer = _answer(kind, own, content)
            except Exception as error:  # the first process says so, in its own words
                said = str(error) if isinstance(error, LimbeckError) else type(error).__name__
                wire.answer(b"", said)
            else:
                wire.answer(answer, "")
    finally:
        stop.set()


def _answer(kind: str, part: Dataset, content: list[Any]) -> bytes:
    if kind == "digest":
        return part_sum(part, content[1]).tobytes()
    work, state = content
    return sum_of(part, work, state)


def part_sum(part: Dataset, key: bytes) -> np.ndarray:
    """The keyed digest of a part's rows."""
    total = np.zeros(5, np.uint64)
    for raw in part._source.chunks(part.schema):
        total = total + keyed_sum(row_digests(raw, part.schema), key)
    return total


def sum_of(part: Dataset, work: Work, state: State) -> bytes:
    """The partial sum of a part."""
    size = work.mechanism.rows_at_once(work.schema, work.row_map)
    return summed_part(work, state, part._encoded().chunks(size))


class ProcessEngine(RemoteEngine):
    """Sums the parts of all processes."""

    name = "jax"

    def __init__(self, part: Dataset, wire: Wire, schema: Schema) -> None:
        self._part = part if schema is part.schema else part.with_schema(schema)
        self._wire = wire

    @property
    def processors(self) -> set[str]:  # type: ignore[override]
        return {processor_text(), *self._wire.processors}

    def version(self) -> str:
        import jax

        return jax.__version__

    def keyed_sum(self, key: bytes) -> np.ndarray:
        order = ("digest", versions(), self._part.schema, key)
        answers = self._wire.ask(order, lambda: part_sum(self._part, key).tobytes(), "reading")
        return sum((np.frombuffer(a, np.uint64) for a in answers), np.zeros(5, np.uint64))

    def partial(self, work: Work, state: State, access: RowAccess) -> Any:
        order = ("sum", versions(), work, dict(state))
        own = lambda: sum_of(self._part, work, state)  # noqa: E731
        return merged(work, self._wire.ask(order, own, work.planned.question.name))

    def close(self) -> None:
        """Let the other processes go."""
        self._wire.send(None)


class Wire:
    """Orders from the first process, and answers to it, through JAX's coordinator."""

    def __init__(self) -> None:
        import jax
        from jax._src.distributed import global_state  # JAX's key-value store has no public name

        if global_state.client is None:
            raise LimbeckError("Call jax.distributed.initialize first, in every process.")
        # Whoever computes first waits for all to begin: here, where all come by. A resumed run may compute long
        # before it asks the others anything.
        jax.local_devices()
        self._client: Any = global_state.client
        self.me, self.count = int(global_state.process_id), int(global_state.num_processes)
        self._turn = 0
        self.processors: set[str] = set()

    def send(self, order: Any) -> None:
        """An order to all others; None: it is done."""
        self._turn += 1
        self._put(f"limbeck/{self._turn}/order", pickle.dumps(order))

    def ask(self, order: Any, own: Callable[[], bytes], name: str) -> list[bytes]:
        """What each process answers to an order; this one works, too."""
        self.send(order)
        answers = [own()]
        for other in range(1, self.count):
            content = self._get(f"limbeck/{self._turn}/{other}", other, name)
            said, processor, answer = pickle.loads(content)
            if said:
                raise LimbeckError(f"Process {other} could not finish '{name}': {said}.")
            self.processors.add(processor)
            answers.append(answer)
        return answers

    def next_order(self) -> Any:
        self._turn += 1
        return pickle.loads(self._get(f"limbeck/{self._turn}/order", None, "the next order"))

    def answer(self, content: bytes, said: str) -> None:
        message = pickle.dumps((said, processor_text(), content))
        self._put(f"limbeck/{self._turn}/{self.me}", message)

    def beat(self, stop: threading.Event) -> None:
        """Show that this process is there."""
        number = 0
        while not stop.wait(BEAT_SECONDS):
            number += 1
            self._client.key_value_set(f"limbeck/beat/{self.me}", str(number), True)

    def _put(self, key: str, content: bytes) -> None:
        pieces = range(0, max(1, len(content)), PIECE_BYTES)
        for number, start in enumerate(pieces):
            self._client.key_value_set_bytes(
                f"{key}/{number}", content[start : start + PIECE_BYTES]
            )
        self._client.key_value_set(f"{key}/pieces", str(len(pieces)))  # last: all of it is there

    def _get(self, key: str, other: int | None, name: str) -> bytes:
        """What stands under a key, as soon as it is there; from a process that shows no life: an error."""
        seen, since = "", time.monotonic()
        while True:
            pieces = self._try(f"{key}/pieces")
            if pieces is not None:
                found = (
                    self._client.key_value_try_get_bytes(f"{key}/{i}") for i in range(int(pieces))
                )
                return b"".join(found)
            beat = self._try(f"limbeck/beat/{other}") or ""
            if other is None or beat != seen:
                seen, since = beat, time.monotonic()
            if time.monotonic() - since > SILENCE_SECONDS:
                raise LimbeckError(
                    f"Process {other} died while '{name}' was summed. Start all processes again: the same call "
                    "goes on where this one stopped, and pays nothing more."
                )
            time.sleep(0.02)

    def _try(self, key: str) -> str | None:
        try:
            return str(self._client.key_value_try_get(key))
        except Exception as error:
            if "NOT_FOUND" in str(error):
                return None
            raise LimbeckError(
                "The first process is gone, and with it JAX's coordinator."
            ) from None
