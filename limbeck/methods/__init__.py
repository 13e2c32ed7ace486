"""The methods: one paper, one file. `METHODS` is the table the command line reads."""

from ._base import (
    AbstractMethod as AbstractMethod,
    Product as Product,
    Request as Request,
)
from ._dpmerf import DPMERF as DPMERF

METHODS: dict[str, type[AbstractMethod]] = {method.name: method for method in (DPMERF,)}
