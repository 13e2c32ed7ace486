"""Run by `test_processes.py`, twice at once: the first process asks, the other one serves, or dies."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
sys.path.insert(0, str(Path(__file__).parent))
me, port, mode, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]

import jax  # noqa: E402

jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=me)

from engine_cases import COUNTS, FLOATS, SCHEMA, measured, people  # noqa: E402

import limbeck as lk  # noqa: E402
from limbeck.engines import processes, serve, together  # noqa: E402

processes.SILENCE_SECONDS = 6.0
rows = people()
part = lk.read(rows[:77] if me == 0 else rows[77:].sample(frac=1, random_state=0), SCHEMA)
if me == 0:
    data, ledger = together(part), lk.Ledger(Path(folder) / "ledger.sqlite")
    try:
        print("counts", measured(data, COUNTS, ledger=ledger)[0], flush=True)
        print("runs", len(ledger.accounts()[0].runs), flush=True)
        print("anew", measured(data, COUNTS)[0], flush=True)
        print("floats", measured(data, FLOATS)[0], flush=True)
    except lk.LimbeckError as error:
        print("error", error, flush=True)
        os._exit(2)  # else JAX waits for the dead
    data.engine.close()
else:
    if mode == "die":
        answer, sums = processes._answer, []

        def dying(kind: str, *others: object) -> bytes:
            sums.extend([kind] if kind == "sum" else [])
            if len(sums) > 2:
                os._exit(9)
            return answer(kind, *others)  # type: ignore[arg-type]

        processes._answer = dying
    serve(part)
