"""Named public data to practise and to measure on: embedded, from a local folder, or downloaded.

    >>> from limbeck import datasets
    >>> "adult" in datasets.names()
    True

A data set here is data, not code: an entry in `registry.toml` and a schema in `schemas/`.
"""

from ._mixture import Mixture as Mixture
from ._pictures import Pictures as Pictures
from ._public import PublicData as PublicData
from ._public import load as load
from ._public import write as write
from ._registry import About as About
from ._registry import about as about
from ._registry import names as names
from ._registry import schema as schema
