"""One process of a group, run by test_ranks: what it finds goes to a JSON file.

python ranks_worker.py TASK RANK SIZE FOLDER
"""

import itertools
import json
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import drot
import faults
import numpy as np
import torch
import torch.distributed as dist
from plans import in_tiles

PERPLEXITY = 12


def cloud(n: int = 101) -> torch.Tensor:
    X = torch.randn(n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    X[: n // 3] += 4
    return X


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Known(drot.affinities.Affinity):
    """The weights e^-cost."""

    def log_rows(self, rows: slice, cost: torch.Tensor) -> torch.Tensor:
        return -cost


def known(cost: drot.costs.Pairwise) -> Known:
    return Known(cost=cost, residual=0.0, n_iter=0, passes=1.0, converged=True, trace=())


SLACK = torch.tensor([[0.0], [1.0], [2.1], [90.0], [91.0], [92.1]], dtype=torch.float64)


def fails(rank: int) -> dict:
    """An error that only the last rank can see ends it, and so the others."""
    C = drot.costs.shard(drot.sqeuclidean(cloud()))
    try:  # an error that all see alike
        drot.symmetric_entropic_affinity(C, perplexity=1e6)
    except ValueError as error:
        found = {"all": str(error)}
    found["again"] = drot.entropic_affinity(C, perplexity=PERPLEXITY).converged
    perplexity = torch.full((101,), float(PERPLEXITY))
    perplexity[100] = 1e6
    if rank == dist.get_world_size() - 1:
        drot.entropic_affinity(C, perplexity=perplexity)  # not caught
    try:
        drot.entropic_affinity(C, perplexity=perplexity)
    except RuntimeError as error:
        found["text"] = str(error)
    return found


FORMS = ("cost None", "cost 3", "affinity None", "affinity 3", "factors")


def forms(value, kind: str) -> dict[str, Callable[[], object]]:
    """What might be given in place of an array of the table, in one process."""
    if not isinstance(value, np.ndarray) or value.ndim != 2 or value.dtype.kind != "f":
        return {}
    array, found = torch.from_numpy(value), {}
    if array.shape[0] != array.shape[1]:
        for block in (None, 3):
            found[f"cost {block}"] = partial(drot.sqeuclidean, array, block=block)
        return found | {"factors": partial(drot.factored_sqeuclidean, array, block=3)}
    log = array if kind == "log_kernel" else array.log()
    same = bool((array == array.T).all())
    for block in (None, 3):
        found[f"cost {block}"] = partial(in_tiles, array, block, symmetric=same)
        if not log.isnan().any():
            cost = partial(in_tiles, -log, block, symmetric=same)
            found[f"affinity {block}"] = lambda cost=cost: known(cost())
    if array.isfinite().all():
        unit = torch.eye(len(array), dtype=array.dtype)
        found["factors"] = partial(drot.costs.Factored, array, unit, block=3)
    return found


def shared(thing):
    if isinstance(thing, drot.affinities.Affinity):
        return replace(thing, cost=drot.costs.shard(thing.cost))
    return drot.costs.shard(thing)


def numbers(found) -> list[torch.Tensor]:
    """All that a result holds, whole."""
    held = [found, *vars(found).values()] if hasattr(found, "result_") else [found]
    return [x.double() for part in held for x in faults.leaves(part, floats=True).values()]


def everything(rank: int) -> dict:
    """Each array of each public function as a cost, whole, in tiles and shared, where it may be."""
    torch.use_deterministic_algorithms(True)  # memory that nobody wrote is NaN
    warnings.simplefilter("ignore")
    slack = {"cost": partial(drot.sqeuclidean, SLACK)}
    found = {"slack": compare("drot.symmetric_entropic_affinity", {"perplexity": 1.5}, slack, [])}
    for name, row in faults.ROWS.items():
        good = row.good()  # later iterations and other starts meet the same sums
        good |= {"max_iter": 2} if "max_iter" in good and not faults.is_estimator(name) else {}
        good |= {"n_starts": 1} if "n_starts" in faults.parameters(name) else {}
        made = {key: forms(value, faults.kind(name, key)) for key, value in good.items()}
        whole = defaultdict(list)
        for form, option in itertools.product(FORMS, options(name)):
            taken = {}
            for parameter in (key for key, some in made.items() if form in some):
                make = {parameter: made[parameter][form]}
                first = whole[parameter, form.split()[0], str(option)]
                if end := compare(name, good | option, make, first):
                    taken |= make
                    found[f"{name} {parameter} {form} {option}"] = end
            if len(taken) > 1:
                found[f"{name} all {form} {option}"] = compare(name, good | option, taken, [])
    return found


def options(name: str) -> list[dict]:
    """Names that decide which sums over the rows are taken."""
    return [
        {parameter: choice}
        for parameter in ("prior", "loss")
        if parameter in faults.parameters(name)
        for choice in faults.choices(name, parameter)
    ] or [{}]


def compare(name: str, good: dict, given: dict[str, Callable], first: list) -> str | None:
    """What becomes of costs that are shared; None if the function takes no such thing whole.

    Tiles are compared with ``first``, what one array gives. The sum is to agree to the bit.
    """
    try:
        one = numbers(faults.call(name, good | {key: make() for key, make in given.items()}))
    except (TypeError, ValueError, AttributeError):
        return None
    first += [] if first else one
    if not close(one, first, 1e-7):
        return "another result in tiles"
    try:
        parts = {key: shared(make()) for key, make in given.items()}
        result = faults.call(name, good | parts)
        two = numbers(result)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(result, drot.affinities.Affinity):
        kept, own = result.cost._dense, result.cost.own
        met = [len(tile) for _, tile in result.tiles()]
        if {sum(met), sum(met) if kept is None else len(kept)} != {own.stop - own.start}:
            return "meets rows of others"
    bits = sum(float(part.nan_to_num().sum()) for part in two).hex()
    return f"equal {bits}" if close(one, two, 1e-10) else "another result"


def close(one: list[torch.Tensor], two: list[torch.Tensor], accuracy: float) -> bool:
    return len(one) == len(two) and all(
        a.shape == b.shape and torch.allclose(a, b, accuracy, accuracy, equal_nan=True)
        for a, b in zip(one, two, strict=True)
    )


if __name__ == "__main__":
    task, rank, size, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    meeting, limit = f"file://{folder / 'meeting'}", timedelta(seconds=20)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size, timeout=limit)
    found = {"fails": fails, "everything": everything}[task](rank)
    (folder / f"{rank}.json").write_text(json.dumps(found))
    os._exit(0)  # a group whose member died cannot be taken down in good order
