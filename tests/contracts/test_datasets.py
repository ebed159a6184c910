"""Generated data and real data: what the functions promise, and what the book's page says."""

import dataclasses
import math
import os
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from drot import datasets as data
from drot.datasets.fetch import ORIGINS
from faults import ROWS, parameters, thing

PAGE = Path(__file__).parents[2] / "book" / "datasets.md"
# The checkout may lie elsewhere than the data; a test asks the environment only.
REAL = pytest.mark.skipif(
    not os.environ.get("DROT_DATA"), reason="DROT_DATA names no folder with the real data"
)

TOYS = [name for name in ROWS if ".datasets." in name and "random_state" in parameters(name)]


@pytest.mark.parametrize("name", TOYS)
def test_container_and_seeds(name):
    """float64 points, int64 classes from 0, a name for each class, and nothing can be replaced.

    A generator moves on, a number does not; 0 is the default.
    """
    make, one = partial(thing(name), **ROWS[name].good()), np.random.default_rng(7)
    toy, name = make(random_state=7), name.rpartition(".")[2]
    n = len(toy.X)
    assert toy.name == name and toy.description.endswith(".")
    assert toy.X.dtype == torch.float64 and toy.X.ndim == 2 and torch.isfinite(toy.X).all()
    assert toy.y.dtype == torch.int64 and toy.y.shape == (n,)
    assert sum(toy.counts) == n and len(toy.counts) == len(toy.label_names)
    assert min(toy.counts) > 0 and isinstance(toy.label_names, tuple)
    with pytest.raises(dataclasses.FrozenInstanceError):
        toy.X = toy.y
    with pytest.raises(TypeError):
        toy.details["batch"] = toy.y
    says = rf"DataSet\('{name}': {n} points in dimension \d+, \d+ classes\)"
    assert re.fullmatch(says, repr(toy))
    assert torch.equal(make(random_state=one).X, toy.X)
    assert not torch.equal(make(random_state=one).X, toy.X)
    assert torch.equal(make().X, make(random_state=0).X) and not torch.equal(make().X, toy.X)


def test_digits_are_stratified():
    """A draw keeps the shares, repeats no digit, and keeps the order; all of them need no seed."""
    whole = data.digits()
    assert whole.X.shape == (1797, 64) and (whole.X.min(), whole.X.max()) == (0, 16)
    for n in (10, 57, 1797):
        draw = data.digits(n, random_state=3)
        index = draw.details["index"]
        assert len(index.unique()) == n == len(draw.y) and (index.diff() > 0).all()
        assert torch.equal(whole.X[index], draw.X) and torch.equal(whole.y[index], draw.y)
        up = np.array(draw.counts) - np.floor(n * np.array(whole.counts) / 1797)
        assert set(up) <= {0, 1}


def test_three_gaussians_have_growing_spread():
    """Centres and standard deviations, each within 5 standard errors."""
    n, spreads = 4000, (0.5, 2, 8)
    toy = data.three_gaussians(n, spreads=spreads, random_state=1)
    for k, (sigma, centre) in enumerate(zip(spreads, [(-8, -8), (8, -8), (0, 8)], strict=True)):
        cloud = toy.X[toy.y == k]
        assert (cloud.mean(dim=0) - torch.tensor(centre)).abs().max() < 5 * sigma / n**0.5
        assert (cloud.std(dim=0) / sigma - 1).abs().max() < 5 / (2 * n) ** 0.5


def test_heteroscedastic_multinomials(n_high=2_000):
    """Sizes of the paper; rows are frequencies; noise is that of a multinomial; p differ."""
    toy = data.heteroscedastic_multinomials(n_high=n_high, random_state=2)
    batch, trials, p = (toy.details[key] for key in ("batch", "n_trials", "profiles"))
    assert toy.X.shape == (1000, 10_000) and toy.counts == (500, 500)
    assert torch.bincount(batch).tolist() == [500, 250, 250]
    assert torch.equal(toy.y, (batch > 0).long())
    assert trials.unique_consecutive().tolist() == [1000, n_high]
    assert (trials[batch < 2] == 1000).all()
    torch.testing.assert_close(toy.X.sum(dim=1), torch.ones(1000, dtype=torch.float64))
    counts = toy.X * trials[:, None]
    assert (counts - counts.round()).abs().max() < 1e-9
    torch.testing.assert_close(p.sum(dim=1), torch.ones(2, dtype=torch.float64))
    # E |x - p|^2 = (1 - |p|^2) / N, per row; its mean over 250 rows is known to a few per cent
    for b in range(3):
        rows, k = toy.X[batch == b], min(b, 1)
        noise = (rows - p[k]).square().sum(dim=1).mean()
        expected = (1 - p[k].square().sum()) / trials[batch == b][0]
        assert abs(float(noise / expected) - 1) < 0.02
        assert (rows.mean(dim=0) - p[k]).norm() < 0.5 * (p[0] - p[1]).norm()


def test_circles():
    """Without noise the points lie on their circles at their angles; noise has its own size."""
    toy = data.circles(300, radii=(1, 2.5), noise=0, dimension=3, random_state=4)
    radius, angle = torch.tensor([1, 2.5], dtype=torch.float64)[toy.y], toy.details["angle"]
    plane = radius[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1)
    torch.testing.assert_close(toy.X[:, :2], plane)
    assert (toy.X[:, 2] == 0).all() and toy.label_names == ("radius 1", "radius 2.5")
    assert angle.min() >= 0 and angle.max() < 2 * math.pi and abs(angle.mean() - math.pi) < 0.4
    noisy = data.circles(2000, noise=0.2, dimension=3, random_state=4)
    assert abs(float(noisy.X[:, 2].std()) / 0.2 - 1) < 0.1


@pytest.mark.parametrize("sizes", [(500,), (200, 400, 800, 1600)])
def test_unbalanced_clusters(sizes):
    """The sizes asked for, unit spread, neighbouring centres at the distance asked for."""
    toy = data.unbalanced_clusters(sizes, separation=7, random_state=5)
    assert toy.counts == sizes
    clouds = toy.X.split(sizes)
    means = torch.stack([cloud.mean(dim=0) for cloud in clouds])
    assert abs(float((toy.X - means[toy.y]).std()) - 1) < 0.05
    gaps = (means - means.roll(1, 0)).norm(dim=1)
    assert len(sizes) == 1 or (gaps - 7).abs().max() < 0.5


def test_stochastic_block_model():
    """A simple graph whose densities of edges are the probabilities, within 5 standard errors."""
    sizes = (200, 120, 80)
    graph = data.stochastic_block_model(sizes, p_within=0.4, p_between=0.1, random_state=6)
    A = graph.X
    assert torch.equal(A, A.T) and (A.diagonal() == 0).all() and set(A.unique().tolist()) == {0, 1}
    assert graph.counts == sizes
    upper = torch.triu(torch.ones_like(A), diagonal=1).bool()
    inside = graph.y[:, None] == graph.y
    for mask, chance in ((inside & upper, 0.4), (~inside & upper, 0.1)):
        error = (chance * (1 - chance) / int(mask.sum())) ** 0.5
        assert abs(float(A[mask].mean()) - chance) < 5 * error
    assert data.stochastic_block_model((3, 2), p_within=0, p_between=1).X.sum() == 12


REAL_DATA = {  # shape, classes
    "snareseq_chromatin": ((1047, 19), 4),
    "snareseq_expression": ((1047, 10), 4),
    "scgem": ((177, 34), 5),
    "coil20": ((1440, 50), 20),
    "mnist": ((10_000, 50), 10),
    "fashion_mnist": ((10_000, 50), 10),
    "olivetti": ((400, 50), 40),
    "pbmc3k": ((2638, 50), 8),
    "umist": ((575, 50), 20),
    "zeisel": ((3005, 45), 7),
    "zeisel_subclasses": ((3005, 45), 48),
}


def loaded(name, **options):
    """A data set, if its file is in DROT_DATA; what is wrong with the file is said."""
    if not (Path(os.environ["DROT_DATA"]).expanduser() / ORIGINS[name].file).exists():
        pytest.skip(f"{name} is not in DROT_DATA")
    return data.load(name, download=False, **options)


@REAL
@pytest.mark.parametrize("name", REAL_DATA)
def test_real_data(name):
    """Shape, names and type of a real data set; its sha256, labels included, was checked before."""
    real = loaded(name)
    assert (tuple(real.X.shape), len(real.counts)) == REAL_DATA[name]
    assert real.X.dtype == torch.float64 and real.y.dtype == torch.int64
    assert torch.isfinite(real.X).all() and real.label_names == tuple(ORIGINS[name].label_names)


@REAL
@pytest.mark.parametrize("name", ["coil20", "mnist", "fashion_mnist", "olivetti", "umist"])
def test_pixels(name):
    """Without components the pixels come, 0 to 255; fewer components are the first of 50."""
    pixels, few = loaded(name, n_components=None), loaded(name, n_components=2)
    n = REAL_DATA[name][0][0]
    assert pixels.X.shape == (n, {"coil20": 1024, "olivetti": 4096, "umist": 1024}.get(name, 784))
    assert pixels.X.dtype == torch.float64 and torch.equal(pixels.X, pixels.X.round())
    assert pixels.X.min() == (4 if name == "umist" else 0) and 200 < pixels.X.max() <= 255
    assert few.X.shape == (n, 2) and torch.equal(few.y, pixels.y)
    total = (pixels.X / 255).var(dim=0, correction=0).sum() * n  # the unit is that of pixels / 255
    assert 0.1 < few.X.square().sum() / total < 1 or name == "coil20"  # its scores are at 128 x 128
    if n < 2000:  # a second decomposition of the large ones would only take time
        torch.testing.assert_close(few.X, loaded(name).X[:, :2], rtol=0, atol=1e-8)


def test_page_lists_every_loader():
    """Each loader has a row in the book, with its shape and its number of classes."""
    row = re.compile(r"^\| `load\(\"(\w+)\"\)` \|(.*)\|(.*)\|$", re.M)
    found = {}
    for name, size, classes in row.findall(PAGE.read_text("utf8")):
        found[name] = tuple(map(int, size.split("×"))), int(classes)
    assert found == REAL_DATA
