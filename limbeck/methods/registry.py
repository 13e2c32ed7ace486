"""The table of methods by name: limbeck's own, and those that installed packages bring.

A package brings a method by an entry point of the group `limbeck.methods`, whose name is the
method's and whose object is its class. Command line, recipes, `verify`, `redistill` and reports
read this table, so they know such a method as they know limbeck's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import metadata

from ..errors import LimbeckError
from .adversarial.dp_cgan import DPCGAN
from .adversarial.dp_gan import DPGAN
from .adversarial.dp_sinkhorn import DPSinkhorn
from .adversarial.gs_wgan import GSWGAN
from .adversarial.pate_gan import PATEGAN
from .base import AbstractMethod
from .classifiers.dp_sgd import DPSGD
from .classifiers.linear_head import LinearHead
from .diffusion.dpdm import DPDM
from .distribution_matching.ndpdc import NDPDC
from .distribution_matching.psg import PSG
from .gpate.datalens import DataLens
from .gpate.gpate import GPATE
from .graphical.aim import AIM
from .graphical.mst import MST
from .graphical.privbayes import PrivBayes
from .kip.dp_kip import DPKIP
from .kip.kip import KIP
from .marginals.marginals import Marginals
from .mean_embedding.dp_hp import DPHP
from .mean_embedding.dp_mepf import DPMEPF
from .mean_embedding.dp_merf import DPMERF
from .mean_embedding.dp_ntk import DPNTK
from .mean_embedding.full_mmd import FullMMD
from .mean_embedding.pearl import PEARL
from .measure_once.measure_once import MeasureOnce

GROUP = "limbeck.methods"
"""Name of the entry points' group."""
OWN = (
    Marginals,
    MeasureOnce,
    DPMERF,
    DPHP,
    DPNTK,
    PEARL,
    DPMEPF,
    GPATE,
    DPKIP,
    KIP,
    NDPDC,
    PSG,
    DPGAN,
    DPCGAN,
    DPSinkhorn,
    GSWGAN,
    PATEGAN,
    DataLens,
    DPDM,
    AIM,
    MST,
    PrivBayes,
    LinearHead,
    DPSGD,
    FullMMD,
)
"""Classes of limbeck's own methods, in the order in which they are listed."""


class Methods(Mapping[str, type[AbstractMethod]]):
    """Methods by name. Those of other packages are loaded when they are asked for."""

    def __init__(self, own: tuple[type[AbstractMethod], ...]) -> None:
        self._own = {method.name: method for method in own}

    def __getitem__(self, name: str) -> type[AbstractMethod]:
        if name in self._own:
            return self._own[name]
        entries = list(metadata.entry_points(group=GROUP, name=name))
        if not entries:
            raise KeyError(name)
        return _loaded(entries)

    def __iter__(self) -> Iterator[str]:
        brought = {point.name for point in metadata.entry_points(group=GROUP)}
        return iter([*self._own, *sorted(brought - set(self._own))])

    def __len__(self) -> int:
        return len(list(iter(self)))


def _loaded(points: list[metadata.EntryPoint]) -> type[AbstractMethod]:
    point, *others = points
    if others:
        packages = ", ".join(sorted(p.dist.name if p.dist else p.value for p in points))
        raise LimbeckError(
            f"The method '{point.name}' comes from several packages ({packages}). Uninstall all but one."
        )
    try:
        method = point.load()
    except Exception as error:
        raise LimbeckError(
            f"The method '{point.name}' of {point.value} cannot be loaded: {error}."
        ) from error
    if not (isinstance(method, type) and issubclass(method, AbstractMethod)):
        raise LimbeckError(
            f"{point.value}, which should bring the method '{point.name}', is no class of methods."
        )
    if method.name != point.name:
        raise LimbeckError(
            f"The method of {point.value} is called '{method.name}', and its entry point '{point.name}'."
        )
    return method


METHODS = Methods(OWN)


def method_class(name: str) -> type[AbstractMethod]:
    """The class of a method that is named; a name that nothing has is refused."""
    if name not in METHODS:
        raise LimbeckError(f"Unknown method '{name}'. Known: {', '.join(METHODS)}.")
    return METHODS[name]
