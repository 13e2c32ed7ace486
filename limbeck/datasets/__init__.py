"""Named public data to practise and to measure on: embedded, from a local folder, or downloaded.

    >>> from limbeck import datasets
    >>> "adult" in datasets.names()
    True

A data set here is data, not code: an entry in `registry.toml` and a schema in `schemas/`.
"""

from .mixture import Mixture as Mixture
from .pictures import Pictures as Pictures
from .public import PublicData as PublicData
from .public import here as here
from .public import load as load
from .public import missing as missing
from .public import write as write
from .registry import About as About
from .registry import about as about
from .registry import names as names
from .registry import schema as schema
