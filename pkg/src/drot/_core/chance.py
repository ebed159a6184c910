"""Chance, which enters through a seed or a generator only."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import torch

from .checks import as_count

Seed = int | np.random.Generator | torch.Generator


def as_rng(random_state: Seed) -> np.random.Generator:
    """A generator of its own for a seed; a numpy generator is used as it is."""
    if isinstance(random_state, torch.Generator):
        device = random_state.device
        seed = torch.randint(2**63 - 1, (1,), generator=random_state, device=device)
        return np.random.default_rng(int(seed))
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        raise TypeError(
            "random_state must be an integer seed or a Generator of NumPy or torch (of an "
            f"estimator also a RandomState, or None); got {random_state!r}"
        )
    return np.random.default_rng(as_count("random_state", random_state, 0))


def seed_number(random_state: Seed) -> int:
    """A seed as scikit-learn takes one: a number below 2^32, which is its own."""
    rng = as_rng(random_state)  # which checks it
    if isinstance(random_state, Integral) and random_state < 2**32:
        return int(random_state)
    return int(rng.integers(2**31))
