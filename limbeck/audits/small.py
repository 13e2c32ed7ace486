"""Settings under which a method runs in a moment, for audits and tests: the code is the same, its steps few."""

from __future__ import annotations

from typing import Any

from ..methods import AbstractMethod, method_class, overlaid

GENERATOR = {"steps": 2, "batch": 12, "hidden": (6,), "code": 3}
PLAY = {
    "steps": 6, "batch": 20, "discriminator_steps": 2, "discriminator_hidden": (4,), "code": 3,
    "hidden": (6,),
}  # fmt: skip

SMALL: dict[str, dict[str, Any]] = {
    "marginals": {"grid": 32, "groups": 4, "soft_rows": 150, "steps": 2},
    "aim": {"grid": 8, "groups": 3, "rounds": 3, "round_steps": 2, "last_steps": 2},
    "mst": {"grid": 8, "groups": 3, "last_steps": 2},
    "privbayes": {"grid": 8, "groups": 3},
    "measure-once": {
        "per_class": 2, "clusters": 2, "networks": 2, "network_width": 4, "features": 24,
        "teacher_steps": 2, "steps": 2,
    },
    "dp-merf": {"features": 24, **GENERATOR},
    "dp-hp": {
        "order": 4, "product_order": 2, "product_columns": 3, "draws": 2, "products": 3, **GENERATOR,
    },
    "dp-ntk": {"widths": (5,), "outputs": 3, **GENERATOR},
    "pearl": {"features": 24, **GENERATOR},
    "dp-mepf": {"filters": 4, "grid": 2, **GENERATOR},
    "g-pate": {
        "teachers": 6, "updates": 4, "points": 6, "teacher_rate": 0.05, "code": 3, "hidden": (6,),
        "channels": (2, 2), "networks": 1, "network_width": 4, "features": 8,
    },
    "datalens": {
        "teachers": 6, "updates": 4, "points": 6, "teacher_rate": 0.05, "code": 3, "hidden": (6,),
        "channels": (2, 2), "networks": 1, "network_width": 4, "features": 8,
    },
    "gs-wgan": {
        "teachers": 3, "updates": 6, "points": 6, "teacher_rate": 0.05, "code": 3, "hidden": (6,),
        "channels": (2, 2), "teacher_hidden": (4,), "teacher_steps": 2,
    },
    "dp-kip": {"per_class": 1, "epochs": 0.6, "batch": 20, "clip": 1e-3, "start": "noise"},
    "ndpdc": {"per_class": 1, "tiles": 2, "views": 2, "filters": 4, "steps": 2},
    "psg": {
        "per_class": 1, "networks": 2, "moments": 2, "batch": 20, "filters": 2, "inner": 2, "updates": 2,
    },
    "dpdm": {"steps": 4, "batch": 20, "draws": 2, "width": 3, "sampler_steps": 2},
    "linear-head": {"features": 12, "steps": 4},
    "dp-sgd": {"steps": 6, "batch": 20, "filters": 2, "hidden": (4,)},
    "dp-gan": PLAY,
    "dp-cgan": PLAY,
    "dp-sinkhorn": {"steps": 3, "batch": 20, "points": 6, "rounds": 4, "code": 3, "hidden": (6,)},
    "pate-gan": {
        "teachers": 6, "updates": 3, "points": 6, "teacher_rate": 0.05, "code": 3, "hidden": (6,),
        "channels": (2, 2), "networks": 1, "network_width": 4, "features": 8, "student_hidden": (4,),
        "student_steps": 2, "generator_steps": 1, "remembered": 2,
    },
}  # fmt: skip
"""By method. Others, such as those that packages bring, are run with their defaults."""


def small_method(name: str) -> AbstractMethod:
    """A method with settings under which it runs in a moment."""
    kind = method_class(name)
    return kind.from_settings(overlaid(kind().settings(), SMALL.get(name, {})))
