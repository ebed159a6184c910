"""Compute the embeddings of the explorer: ``.venv/bin/python scripts/explorer_data.py``.

Five hundred digits, seven methods, four perplexities, and for a descent six starts: PCA and five
drawn at random. Every descent runs to a residual of 1e-3. Positions are kept as whole numbers of 16
bits, images with 4 bits a pixel, both in base64, so that the page can read them without asking for
a file. Takes about a minute and a half on one core.
"""

from __future__ import annotations

import base64
import datetime
import json
import platform
from pathlib import Path

import drot
import numpy as np
import torch

TARGET = Path(__file__).resolve().parents[1] / "book" / "_static" / "widgets" / "explorer_data.js"
HEAD = "/* Written by scripts/explorer_data.py. */\nwindow.drotExplorerData = "

N, K = 500, 10  # images; neighbours that are counted
PERPLEXITIES = (5, 15, 30, 60)
SEEDS = {f"r{seed}": seed for seed in range(1, 6)}  # of the random starts
STARTS = {"pca": "PCA"} | {key: f"random {seed}" for key, seed in SEEDS.items()}
METHODS = {
    "pca": "PCA",
    "ccpca": "ccPCA",
    "laplacian": "Laplacian eigenmaps",
    "tsne": "t-SNE",
    "snekhorn": "SNEkhorn",
    "tsnekhorn": "t-SNEkhorn",
    "umap": "UMAP",
}
DESCENTS = ("tsne", "snekhorn", "tsnekhorn", "umap")  # these have a start
LARGEST = 2**15 - 1


def text(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def shown_pixels() -> np.ndarray:
    """The images as the page shows them: 17 grey levels become 16. Shape (n, 64)."""
    return np.minimum(drot.datasets.digits(N).X.numpy(), 15).astype(np.uint8)


def affinity(method: str, xi: int) -> torch.Tensor:
    """What a method sees of the images, (n, n)."""
    cost = drot.sqeuclidean(drot.datasets.digits(N).X)
    if method in ("snekhorn", "tsnekhorn"):
        return drot.symmetric_entropic_affinity(cost, perplexity=xi).plan
    if method == "umap":
        return drot.fuzzy_union(drot.umap_membership(cost, n_neighbors=xi).plan)
    return drot.entropic_affinity(cost, perplexity=xi, diagonal="drop").plan


def objective(method: str, plan: torch.Tensor):
    """The loss of a method, to be evaluated at positions."""
    if method == "tsne":
        return drot.SNELoss(drot.symmetrize(plan), "student")
    if method == "umap":
        a, b = drot.umap_curve()
        return drot.BernoulliLoss(plan, "curve", a=a, b=b)
    return drot.SNEkhornLoss(plan, kernel="gaussian" if method == "snekhorn" else "student")


def embed(method: str, xi: int = 0, start: str = "") -> tuple[torch.Tensor, float | None]:
    """Positions (n, 2), and for a descent the value of its objective."""
    X = drot.datasets.digits(N).X
    if method == "pca":
        return drot.spectral.pca(X).Z, None
    plan = affinity(method, xi)
    if method == "ccpca":
        return drot.ccpca(X, plan.log(), n_samples=200, random_state=0).Z, None
    if method == "laplacian":
        return drot.spectral.laplacian_eigenmaps(drot.symmetrize(plan)).Z, None
    chance = start in SEEDS
    init = drot.random_start(N, random_state=SEEDS[start]) if chance else drot.pca_start(X)
    found = drot.embed(objective(method, plan), init, tol=1e-3, max_iter=20_000)
    return found.Z, float(found.value)


def pack(Z: torch.Tensor, like: torch.Tensor) -> tuple[dict, np.ndarray]:
    """Whole numbers and their unit. The picture is turned, or mirrored, to resemble `like`."""
    Z = Z - Z.mean(dim=0)
    left, _, right = torch.linalg.svd(Z.T @ (like - like.mean(dim=0)))
    Z = (Z @ left @ right).numpy()
    unit = float(np.abs(Z).max()) / LARGEST
    whole = np.rint(Z / unit).astype("<i2")
    return {"unit": unit, "xy": text(whole)}, whole * unit


def main() -> None:
    data = drot.datasets.digits(N)
    pixels = shown_pixels()
    like = drot.spectral.pca(data.X).Z
    cases = [(m, xi, s) for m in DESCENTS for xi in PERPLEXITIES for s in STARTS]
    cases = [(m, xi, "") for m in ("ccpca", "laplacian") for xi in PERPLEXITIES] + cases
    maps = []
    for method, xi, start in [("pca", 0, ""), *cases]:
        Z, value = embed(method, xi, start)
        packed, shown = pack(Z, like)
        kept = float(drot.metrics.neighborhood_curve(pixels.astype(float), shown).overlap[K - 1])
        case = {"method": method, "perplexity": xi, "start": start}
        maps.append({**case, "kept": round(kept, 6), "value": value, **packed})
        print(f"{method:10s} {xi:3d} {start:6s} kept {kept:.3f}", flush=True)
    whole = {
        "made": {
            "date": datetime.date.today().isoformat(),
            "python": platform.python_version(),
            "torch": torch.__version__.partition("+")[0],
        },
        "n": N,
        "k": K,
        "methods": METHODS,
        "perplexities": PERPLEXITIES,
        "starts": STARTS,
        "classes": "".join(str(int(label)) for label in data.y),
        "pixels": text(pixels[:, ::2] << 4 | pixels[:, 1::2]),
        "maps": maps,
    }
    TARGET.write_text(HEAD + json.dumps(whole, separators=(",", ":")) + ";\n", encoding="utf8")
    print(f"{TARGET.name}: {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
