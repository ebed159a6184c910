"""One process of a group, run by test_ranks: what it finds goes to a JSON file.

python ranks_worker.py TASK RANK SIZE FOLDER
"""

import itertools
import json
import os
import sys
import warnings
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

PERPLEXITY = 12


def cloud(n: int = 101) -> torch.Tensor:
    X = torch.randn(n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    X[: n // 3] += 4
    return X


SOLVERS = {
    "entropic": lambda C: drot.entropic_affinity(C, perplexity=PERPLEXITY),
    "dropped": lambda C: drot.entropic_affinity(C, perplexity=PERPLEXITY, diagonal="drop"),
    "neighbours": lambda C: drot.entropic_affinity(C, perplexity=PERPLEXITY, n_neighbors=40),
    "symmetric": lambda C: drot.symmetric_entropic_affinity(C, perplexity=PERPLEXITY),
    "sinkhorn": lambda C: drot.doubly_stochastic_affinity(C, perplexity=PERPLEXITY),
}


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Known(drot.affinities.Affinity):
    """The weights e^-cost."""

    def log_rows(self, rows: slice, cost: torch.Tensor) -> torch.Tensor:
        return -cost


def known(cost: drot.costs.Pairwise) -> Known:
    return Known(cost=cost, residual=0.0, n_iter=0, passes=1.0, converged=True, trace=())


SLACK = torch.tensor([[0.0], [1.0], [2.1], [90.0], [91.0], [92.1]], dtype=torch.float64)


def equal(rank: int) -> dict:
    """Shared rows against all rows, in one process each."""
    found = {}
    for block in (None, 7):
        C = drot.sqeuclidean(cloud(), block=block)
        mine = drot.costs.shard(C)
        for name, solve in SOLVERS.items():
            alone, shared = solve(C), solve(mine)
            plan = shared.plan  # a collective: every rank calls it
            found[f"{name} {block}"] = {
                "plan": float((alone.plan - plan).abs().max()),
                "perplexity": float((alone.perplexity - shared.perplexity).abs().max()),
                "rows": [mine.own.stop - mine.own.start, sum(len(x) for _, x in shared.tiles())],
                "bits": plan.double().sum().item().hex(),
            }
        if block is None:
            found["kept rows"] = mine._dense.shape[0]
    C = drot.sqeuclidean(SLACK)
    both = [
        drot.symmetric_entropic_affinity(cost, perplexity=1.5) for cost in (C, drot.costs.shard(C))
    ]
    found["slack"] = [affinity.slack.tolist() for affinity in both]
    return found


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


# ------------------------------------------------------------- all functions, of faults.ROWS
def met(matrix: torch.Tensor, block: int | None) -> drot.costs.Pairwise:
    """A matrix as a cost is met, infinite entries too."""
    same = bool((matrix == matrix.T).all())
    return drot.costs.Pairwise(
        lambda rows: matrix[rows].clone(), tuple(matrix.shape), matrix, block=block, symmetric=same
    )


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
    for block in (None, 3):
        found[f"cost {block}"] = partial(met, array, block)
        if not log.isnan().any():
            found[f"affinity {block}"] = lambda block=block: known(met(-log, block))
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
    if isinstance(found, drot.costs.Pairwise):
        return [found.dense()]
    if isinstance(found, torch.Tensor | np.ndarray | bool | int | float):
        return [torch.as_tensor(found).to_dense().double()]
    if isinstance(found, drot.affinities.Affinity):
        return [found.plan, *numbers([vars(found)[key] for key in sorted(vars(found))])]
    if hasattr(found, "__dict__") and not isinstance(found, type | Callable):
        return numbers([vars(found)[key] for key in sorted(vars(found)) if key != "_kept"])
    parts = found if isinstance(found, list | tuple) else []
    return [number for part in parts for number in numbers(part)]


def everything(rank: int) -> dict:
    """Each array of each public function as a cost, whole and shared, where it may be whole."""
    torch.use_deterministic_algorithms(True)  # memory that nobody wrote is NaN
    warnings.simplefilter("ignore")
    found = {}
    for name, row in faults.ROWS.items():
        good = row.good()
        made = {key: forms(value, faults.kind(name, key)) for key, value in good.items()}
        for form, option in itertools.product(FORMS, options(name)):
            taken = {}
            for parameter in (key for key, some in made.items() if form in some):
                make = {parameter: made[parameter][form]}
                if end := compare(name, good | option, make):
                    taken |= make
                    found[f"{name} {parameter} {form} {option}"] = end
            if len(taken) > 1:
                found[f"{name} all {form} {option}"] = compare(name, good | option, taken)
    return found


def options(name: str) -> list[dict]:
    """Names that decide which sums over the rows are taken."""
    return [
        {parameter: choice}
        for parameter in ("prior", "loss")
        if parameter in faults.parameters(name)
        for choice in faults.choices(name, parameter)
    ] or [{}]


def compare(name: str, good: dict, given: dict[str, Callable]) -> str | None:
    """What becomes of costs that are shared; None if the function takes no such thing whole."""
    try:
        one = numbers(faults.call(name, good | {key: make() for key, make in given.items()}))
    except (TypeError, ValueError, AttributeError):
        return None
    try:
        parts = {key: shared(make()) for key, make in given.items()}
        two = numbers(faults.call(name, good | parts))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    same = len(one) == len(two) and all(
        a.shape == b.shape and torch.allclose(a, b, 1e-10, 1e-10, equal_nan=True)
        for a, b in zip(one, two, strict=True)
    )
    return "equal" if same else "another result"


if __name__ == "__main__":
    task, rank, size, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    meeting, limit = f"file://{folder / 'meeting'}", timedelta(seconds=20)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size, timeout=limit)
    found = {"equal": equal, "fails": fails, "everything": everything}[task](rank)
    (folder / f"{rank}.json").write_text(json.dumps(found))
    os._exit(0)  # a group whose member died cannot be taken down in good order
