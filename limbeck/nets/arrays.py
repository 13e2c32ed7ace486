"""A network's numbers under stable names, as files hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..errors import LimbeckError

Network = TypeVar("Network", bound=eqx.Module)


def network_arrays(network: eqx.Module) -> dict[str, np.ndarray]:
    """A network's numbers under stable names, for a file."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(network, eqx.is_array))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def filled_network(network: Network, arrays: Mapping[str, np.ndarray]) -> Network:
    """A network of the same build with the numbers of a file; the file must hold just these."""
    wanted = network_arrays(network)
    shapes = {name: array.shape for name, array in arrays.items()}
    if shapes != {name: array.shape for name, array in wanted.items()}:
        raise LimbeckError(
            f"The file does not hold the {len(wanted)} arrays of a {type(network).__name__} for "
            "these rows; write it with limbeck.nets.network_arrays."
        )
    dynamic, static = eqx.partition(network, eqx.is_array)
    filled = jax.tree_util.tree_map_with_path(
        lambda path, leaf: jnp.asarray(arrays[jax.tree_util.keystr(path)], leaf.dtype), dynamic
    )
    return eqx.combine(filled, static)
