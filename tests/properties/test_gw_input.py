"""Gromov-Wasserstein: what none of its functions takes."""

import sys

import drot
import numpy as np
import pytest
import torch
from plans import energy, problem

gw = drot.semi_relaxed_gw


# --------------------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: gw(np.eye(3), np.eye(2, dtype="f4")), "float64 and cost_z is torch.float32"),
        (lambda: gw(np.eye(3), [[1, -1], [-1, 1]], loss="kl"), r"entry \(0, 1\) is -1"),
        (lambda: drot.gromov.coarsen(np.eye(3), [0, 1, 3]), "has the label 3; 3 points have fewer"),
        (lambda: drot.gromov.coarsen(np.eye(3), [0, 2, 2]), "leaves cluster 1 empty"),
        (lambda: drot.gromov.coarsen(np.eye(3), [[1 / 3, 0]] * 3), "leaves cluster 1 empty"),
        (lambda: drot.costs.Factored(np.eye(3), np.ones((3, 1))), "must have as many columns"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize(
    ("name", "more"), [("gromov_wasserstein", np.eye(3)), ("coot_clustering", 2)]
)
def test_without_pot_the_sentence_names_it(name, more, monkeypatch):
    """Good input, and the one optional library of this function is missed."""
    for module in ("ot", "ot.lp", "ot.gromov"):
        monkeypatch.setitem(sys.modules, module, None)
    says = f"^{name} calls POT, which is not installed; pip install POT$"
    with pytest.raises(ImportError, match=says) as caught:
        getattr(drot, name)(np.eye(3), more)
    assert caught.value.__suppress_context__  # one sentence, not two tracebacks


@pytest.mark.parametrize(("off", "good"), [(9e-6, True), (1.1e-5, False), (-1.1e-5, False)])
def test_masses_sum_to_one_up_to_rounding(off, good):
    """Weights within 1e-5 are divided by their sum; a plan is taken as it is."""
    A, B = problem(0, 4, 2)
    w = torch.tensor([0.1, 0.2, 0.3, 0.4 + off], dtype=torch.float64)
    T = w[:, None].expand(4, 2) / 2
    if good:
        found = gw(A, B, weights_x=w).plan.sum(dim=1)
        torch.testing.assert_close(found, w / w.sum(), rtol=0, atol=1e-12)
        assert drot.gw_objective(A, B, T) == pytest.approx(energy(A, B, T), rel=1e-12)
        return
    with pytest.raises(ValueError, match="weights_x must sum to 1"):
        gw(A, B, weights_x=w)
    with pytest.raises(ValueError, match="plan must have total mass 1"):
        drot.gw_objective(A, B, T)


@pytest.mark.parametrize("solve", [gw, drot.gromov_wasserstein])
def test_starts_have_the_marginals(solve):
    """To 1e-5 of the largest weight, rows then exactly; of the right shape."""
    pytest.importorskip("ot")
    A, T = problem(4, 20)[0], torch.full((20, 20), 1 / 400, dtype=torch.float64)
    near, off = T.clone(), T.clone()
    near[3, 1] += 4e-7
    off[3, 1] += 6e-7
    found = solve(A, A, init=near, max_iter=1, on_failure="ignore")
    torch.testing.assert_close(found.plan.sum(dim=1), T.sum(dim=1), rtol=0, atol=1e-14)
    for wrong in (off, torch.cat([T, T[:1]]), T[:, :19]):
        with pytest.raises(ValueError, match=r"init must be (a \(20, 20\)|a plan.*row 3 sums to)"):
            solve(A, A, init=wrong)


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounding_below_zero_under_kl(size, dtype):
    """Of a factored similarity, as a share of its largest terms; of an array nothing."""
    bound = 8 * torch.finfo(dtype).eps * 2**0.5 * 2  # two factors, terms of at most 1 + 1
    B, T = torch.ones(2, 2, dtype=dtype), torch.eye(2, dtype=dtype) / 2
    for share, good in ((0.5, True), (2.0, False)):
        C = drot.gram(size * torch.tensor([[1, 0], [-share * bound, 1]], dtype=dtype))
        if good:
            value = energy(size**2 * np.eye(2), B, T, "kl")
            assert drot.gw_objective(C, B, T, loss="kl") == pytest.approx(value, rel=1e-4)
        else:
            with pytest.raises(ValueError, match=r"cost_x without negative entries; entry \(0, 1"):
                drot.gw_objective(C, B, T, loss="kl")
        with pytest.raises(ValueError, match=r"cost_z without negative entries; entry \(0, 1"):
            drot.gw_objective(B, C.dense(), T, loss="kl")
