"""Networks and the one training loop. Post-processing only: nothing here ever sees a row."""

from ._fit import fit as fit
from ._generator import (
    Generator as Generator,
    arrays_of as arrays_of,
    build_generator as build_generator,
    settle as settle,
    with_arrays as with_arrays,
)
