"""New points in a map that is held fixed (Chapter 15)."""

import numpy as np
import pytest
import torch
from drot.costs.kernels import Curve, Gaussian
from drot.embeddings.place import place

CURVES = {
    "gaussian": (Gaussian(), None),
    "student": (Curve(), None),
    "umap": (Curve(a=1.577, b=0.895, guard=1e-3), 1.0),
    "largevis": (Curve(), 7.0),
}


def problem(seed: int):
    """A map of three groups, rows of weights over it, and duals."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(30, 2)) + 3 * np.repeat([[0, 0], [1, 0], [0, 1]], 10, axis=0)
    P = np.exp(-rng.uniform(0, 8, size=(6, 30)))
    return Z, P / P.sum(axis=1, keepdims=True), rng.normal(size=30) / 2


def value(z, p, Z, curve, dual):
    """f at positions z (g, 2), by its definition."""
    d2 = ((z[:, None] - Z) ** 2).sum(axis=2)
    curve, repulsion = curve
    C = d2 if curve.flat else np.log(curve.a) + curve.b * np.log(d2 + curve.guard)
    if repulsion is None:
        return C @ p + np.logaddexp.reduce(dual - C, axis=1)
    return C @ p + repulsion * np.log1p(np.exp(-C)).sum(axis=1)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", CURVES)
def test_prp_new_point(name, seed):
    """(a) the Gaussian row problem is convex, its solution matches means and is the least of a
    grid; (b) the others fall from the start and rest in a local minimum, the best place nearby."""
    curve, (Z, P, dual) = CURVES[name], problem(seed)
    dual = dual if curve[1] is None else np.zeros(30)
    P, Zt = torch.as_tensor(P), torch.as_tensor(Z)
    found = place(P, Zt, curve[0], repulsion=curve[1], dual=torch.as_tensor(dual), tol=1e-9)
    assert found.residual.max() <= 1e-9
    size = np.sqrt(((Z - Z.mean(0)) ** 2).sum(1).mean())
    for i, (p, z) in enumerate(zip(P.numpy(), found.Z.numpy(), strict=True)):
        best = value(z[None], p, Z, curve, dual)[0]
        assert best == pytest.approx(float(found.value[i]), rel=1e-9)
        assert best <= value((p @ Z)[None], p, Z, curve, dual)[0] + 1e-9
        h = 1e-4 * np.concatenate([np.eye(2), -np.eye(2)])
        slopes = (value(z + h, p, Z, curve, dual)[:2] - value(z + h, p, Z, curve, dual)[2:]) / 2e-4
        np.testing.assert_allclose(slopes, 0, atol=1e-5)
        if name == "gaussian":
            side = np.linspace(-12, 16, 141)
            grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
            assert best <= value(grid, p, Z, curve, dual).min() + 1e-9
            q = np.exp(dual - ((z - Z) ** 2).sum(1))
            np.testing.assert_allclose(q @ Z / q.sum(), p @ Z, atol=1e-8)
        elif name == "student":
            angle = np.linspace(0, 6.3, 30)
            around = z + size * 1e-2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            assert best <= value(around, p, Z, curve, dual).min() + 1e-9
