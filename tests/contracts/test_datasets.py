"""Generated data and real data: what the functions promise, and what the book's page says."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from drot import datasets as data
from drot.datasets import fetch as _fetch
from drot.datasets.fetch import ORIGINS

PAGE = Path(__file__).parents[2] / "book" / "datasets.md"
# The checkout may lie elsewhere than the data; a test asks the environment only.
REAL = pytest.mark.skipif(
    not os.environ.get("DROT_DATA"), reason="DROT_DATA names no folder with the real data"
)

TOYS = {
    "digits": lambda **options: data.digits(200, **options),
    "three_gaussians": data.three_gaussians,
    "heteroscedastic_multinomials": lambda **options: data.heteroscedastic_multinomials(
        (6, 3, 3), dimension=200, **options
    ),
    "circles": lambda **options: data.circles(20, radii=(1, 3), **options),
    "unbalanced_clusters": data.unbalanced_clusters,
    "stochastic_block_model": data.stochastic_block_model,
}


# What every generated set has in common


@pytest.mark.parametrize("name", TOYS)
def test_container(name):
    """float64 points, int64 classes from 0, a name for each class, and nothing can be replaced."""
    toy = TOYS[name]()
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
    assert re.fullmatch(
        rf"DataSet\('{name}': {n} points in dimension \d+, \d+ classes\)", repr(toy)
    )


@pytest.mark.parametrize("name", TOYS)
def test_same_seed_same_bits(name):
    """A seed decides every bit; another seed, or none left in a generator, gives other points."""
    toy, again, other = (TOYS[name](random_state=seed) for seed in (7, 7, 8))
    assert torch.equal(toy.X, again.X) and torch.equal(toy.y, again.y)
    assert all(torch.equal(toy.details[key], again.details[key]) for key in toy.details)
    assert not torch.equal(toy.X, other.X)
    assert torch.equal(TOYS[name](random_state=np.random.default_rng(7)).X, toy.X)
    assert torch.equal(TOYS[name](random_state=np.int64(7)).X, toy.X)
    assert torch.equal(TOYS[name]().X, TOYS[name](random_state=0).X)
    for make in (np.random.default_rng, lambda s: torch.Generator().manual_seed(s)):
        one, two = make(7), make(7)
        first = TOYS[name](random_state=one)
        assert torch.equal(first.X, TOYS[name](random_state=two).X)
        assert not torch.equal(first.X, TOYS[name](random_state=one).X)


@pytest.mark.parametrize("name", TOYS)
def test_global_random_state_rests(name):
    """Nothing is drawn from the generators that numpy and torch share."""
    state = np.random.get_state
    legacy, shared = state()[1].copy(), torch.get_rng_state()
    TOYS[name]()
    assert (state()[1] == legacy).all()
    assert torch.equal(torch.get_rng_state(), shared)


@pytest.mark.parametrize("seed", [None, 1.0, "0", True])
@pytest.mark.parametrize("name", TOYS)
def test_a_seed_is_asked_for(name, seed):
    """None and other things that are no seed are refused by name."""
    with pytest.raises(TypeError, match="random_state"):
        TOYS[name](random_state=seed)
    with pytest.raises(ValueError, match="random_state"):
        TOYS[name](random_state=-1)


BAD = [
    (lambda: data.digits(9), ValueError, "n_samples must be a whole number from 10 to 1797"),
    (lambda: data.digits(1798), ValueError, "from 10 to 1797; got 1798"),
    (lambda: data.digits(10.0), ValueError, "n_samples must be a whole number"),
    (lambda: data.three_gaussians(0), ValueError, "n_per_cluster must be a whole number of at"),
    (lambda: data.three_gaussians(spreads=(1, 2)), ValueError, "spreads must list 3 values"),
    (lambda: data.three_gaussians(spreads=(1, 2, 0)), ValueError, "spreads must be positive"),
    (lambda: data.three_gaussians(spreads=1), ValueError, "3 values; got 1"),
    (lambda: data.three_gaussians(spreads=(1, 2, "x")), TypeError, "spreads must be one number"),
    (lambda: data.heteroscedastic_multinomials((1, 1)), ValueError, "n_per_batch must list 3"),
    (lambda: data.heteroscedastic_multinomials((1, 0, 1)), ValueError, "n_per_batch must be"),
    (lambda: data.heteroscedastic_multinomials(n_trials=0), ValueError, "n_trials"),
    (lambda: data.heteroscedastic_multinomials(n_high=0.5), ValueError, "n_high"),
    (lambda: data.heteroscedastic_multinomials(dimension=1), ValueError, "dimension"),
    (lambda: data.heteroscedastic_multinomials(profiles="x"), ValueError, "'simplex', 'cube'"),
    (lambda: data.circles(radii=()), ValueError, "radii must list one value for each group"),
    (lambda: data.circles(radii=(-1,)), ValueError, "radii must be positive"),
    (lambda: data.circles(noise=-0.1), ValueError, "noise must be 0 or positive"),
    (lambda: data.circles(noise=math.nan), ValueError, "noise must be 0 or positive"),
    (
        lambda: data.circles(dimension=1),
        ValueError,
        "dimension must be a whole number of at least 2",
    ),
    (
        lambda: data.unbalanced_clusters((3, 0)),
        ValueError,
        "sizes must be a whole number of at least 1",
    ),
    (lambda: data.unbalanced_clusters(separation=0), ValueError, "separation"),
    (lambda: data.unbalanced_clusters(dimension=1), ValueError, "dimension"),
    (lambda: data.stochastic_block_model(()), ValueError, "sizes must list one value"),
    (lambda: data.stochastic_block_model(p_within=1.1), ValueError, "p_within must lie between"),
    (lambda: data.stochastic_block_model(p_between=math.nan), ValueError, "p_between must lie"),
    (lambda: data.load_snareseq("atac"), ValueError, "'chromatin', 'expression'"),
    (lambda: data.load_coil20(n_components=51), ValueError, "number from 1 to 50; got 51"),
    (lambda: data.load_mnist(n_components=0), ValueError, "n_components must be a whole number"),
    (lambda: data.load_fashion_mnist(n_components=785), ValueError, "from 1 to 784; got 785"),
    (lambda: data.load_olivetti(n_components=401), ValueError, "from 1 to 400; got 401"),
    (lambda: data.load_olivetti(n_components=2.0), ValueError, "n_components must be a whole"),
    (lambda: data.load("scgem", n_components=3), ValueError, "scgem is a table"),
    (lambda: data.load("coil"), ValueError, "'coil20'"),
    (lambda: data.available("coil"), ValueError, "'coil20'"),
]


@pytest.mark.parametrize(("call", "kind", "words"), BAD, ids=[words for *_, words in BAD])
def test_bad_input_gets_one_sentence(call, kind, words, tmp_path, monkeypatch):
    """The argument is named, with its value or its bound, before any file is looked for."""
    monkeypatch.setenv("DROT_CACHE", str(tmp_path / "none"))
    monkeypatch.delenv("DROT_DATA", raising=False)
    with pytest.raises(kind, match=re.escape(words)) as caught:
        call()
    assert "\n" not in str(caught.value)


# The distributions


def test_digits_are_stratified():
    """A draw keeps the shares, repeats no digit, and keeps the order; all of them need no seed."""
    whole = data.digits()
    assert whole.X.shape == (1797, 64)
    assert whole.X.min() == 0 and whole.X.max() == 16
    for n in (10, 57, 100, 1796, 1797):
        draw = data.digits(n, random_state=3)
        index = draw.details["index"]
        assert len(index.unique()) == n == len(draw.y) and (index.diff() > 0).all()
        assert torch.equal(whole.X[index], draw.X) and torch.equal(whole.y[index], draw.y)
        share = n * np.array(whole.counts) / 1797
        up = np.array(draw.counts) - np.floor(share)  # 1 where rounded up: the largest remainders
        assert set(up) <= {0, 1}
        rest = share % 1
        assert not up.any() or up.all() or rest[up == 1].min() >= rest[up == 0].max()


def test_three_gaussians_have_growing_spread():
    """Centres and standard deviations, each within 5 standard errors."""
    n = 4000
    toy = data.three_gaussians(n, spreads=(0.5, 2, 8), random_state=1)
    centres = torch.tensor([[-8.0, -8.0], [8.0, -8.0], [0.0, 8.0]], dtype=torch.float64)
    for k, sigma in enumerate((0.5, 2, 8)):
        cloud = toy.X[toy.y == k]
        assert (cloud.mean(dim=0) - centres[k]).abs().max() < 5 * sigma / n**0.5
        assert (cloud.std(dim=0) / sigma - 1).abs().max() < 5 / (2 * n) ** 0.5


@pytest.mark.parametrize("n_high", [10_000, 2_000])
def test_heteroscedastic_multinomials(n_high):
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


def test_profiles_of_the_multinomials():
    """Simplex: |p|^2 near 2/m, gap 2/m; cube: 4/(3m) and 2/(3m)."""
    m, seeds = 10_000, range(4)
    expected = {"simplex": (2 / m, 2 / m), "cube": (4 / (3 * m), 2 / (3 * m))}
    for profiles, (square, gap) in expected.items():
        for seed in seeds:
            p = data.heteroscedastic_multinomials(
                (1, 1, 1), profiles=profiles, random_state=seed
            ).details["profiles"]
            assert (p > 0).all()
            assert abs(float(p.square().sum(dim=1).mean()) / square - 1) < 0.1
            assert abs(float((p[0] - p[1]).square().sum()) / gap - 1) < 0.1


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


@pytest.mark.parametrize("sizes", [(500,), (300, 900), (200, 400, 800, 1600)])
def test_unbalanced_clusters(sizes):
    """The sizes asked for, unit spread, neighbouring centres at the distance asked for."""
    toy = data.unbalanced_clusters(sizes, separation=7, random_state=5)
    assert toy.counts == sizes
    means = torch.stack([toy.X[toy.y == k].mean(dim=0) for k in range(len(sizes))])
    assert (
        abs(float(torch.cat([toy.X[toy.y == k] - means[k] for k in range(len(sizes))]).std()) - 1)
        < 0.05
    )
    for k in range(len(sizes) if len(sizes) > 1 else 0):
        assert abs(float((means[k] - means[k - 1]).norm()) - 7) < 0.5


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


# The real data, where it is

REAL_DATA = {
    # name: loader, shape, counts, a fact about X
    "snareseq_chromatin": (
        data.load_snareseq,
        (1047, 19),
        (379, 324, 201, 143),
        lambda X: bool((X.round() == X).all()) and (X.min(), X.max()) == (373, 460_596),
    ),
    "snareseq_expression": (
        lambda **options: data.load_snareseq("expression", **options),
        (1047, 10),
        (379, 324, 201, 143),
        lambda X: X.mean(dim=0).abs().max() < 1e-6 and X.min() > -34 and X.max() < 40,
    ),
    "scgem": (
        data.load_scgem,
        (177, 34),
        (35, 40, 32, 36, 34),
        lambda X: 0.5 < (X == 0).double().mean() < 0.63 and X.min() == 0,
    ),
    "coil20": (
        data.load_coil20,
        (1440, 50),
        (72,) * 20,
        lambda X: X.mean(dim=0).abs().max() < 1e-9 and (X.std(dim=0).diff() < 0).all(),
    ),
    "mnist": (
        data.load_mnist,
        (10_000, 50),
        (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        lambda X: X.mean(dim=0).abs().max() < 1e-9 and (X.std(dim=0).diff() < 0).all(),
    ),
    "fashion_mnist": (
        data.load_fashion_mnist,
        (10_000, 50),
        (985, 1032, 985, 1011, 972, 1021, 982, 997, 1009, 1006),
        lambda X: X.mean(dim=0).abs().max() < 1e-9 and (X.std(dim=0).diff() < 0).all(),
    ),
    "olivetti": (
        data.load_olivetti,
        (400, 50),
        (10,) * 40,
        lambda X: X.mean(dim=0).abs().max() < 1e-9 and (X.std(dim=0).diff() < 0).all(),
    ),
    "pbmc3k": (
        data.load_pbmc3k,
        (2638, 50),
        (1144, 480, 342, 316, 154, 150, 37, 15),
        lambda X: torch.equal(X, X.float().double()) and abs(X[0, 0] - 5.556233) < 1e-6,
    ),
}


def present(name):
    if not data.available(name):
        folder = Path(os.environ["DROT_DATA"]).expanduser()
        if (folder / ORIGINS[name].file).exists():
            _fetch.find(name, download=False)  # raises, and says what is wrong with the file
        pytest.skip(f"{name} is not in DROT_DATA")


def test_every_real_set_is_listed():
    """The table above and the table of addresses name the same sets."""
    assert list(REAL_DATA) == list(ORIGINS)


@REAL
@pytest.mark.parametrize("name", REAL_DATA)
def test_real_data(name, tmp_path, monkeypatch):
    """Shape, counts, names, type and sha256 of a real data set, read from DROT_DATA."""
    monkeypatch.setenv("DROT_CACHE", str(tmp_path / "none"))
    present(name)
    load, shape, counts, fact = REAL_DATA[name]
    real = load(download=False)
    assert tuple(real.X.shape) == shape and real.counts == counts
    assert real.X.dtype == torch.float64 and real.y.dtype == torch.int64
    assert torch.isfinite(real.X).all()
    assert real.label_names == tuple(ORIGINS[name].label_names)
    assert torch.equal(data.load(name, download=False).X, real.X)
    assert fact(real.X)
    arrays = _fetch.find(name, download=False)
    hashed = arrays["X32" if name == "coil20" else "X"]
    assert _fetch.digest(hashed, arrays["y"]) == ORIGINS[name].sha256
    assert not (tmp_path / "none").exists()


@REAL
@pytest.mark.parametrize("name", ["coil20", "mnist", "fashion_mnist", "olivetti"])
def test_pixels(name, tmp_path, monkeypatch):
    """Without components the pixels come, 0 to 255; fewer components are the first of 50."""
    monkeypatch.setenv("DROT_CACHE", str(tmp_path / "none"))
    present(name)
    load, (n, _), *_ = REAL_DATA[name]
    pixels = load(n_components=None, download=False)
    size = {"coil20": 1024, "olivetti": 4096}.get(name, 784)
    assert pixels.X.shape == (n, size) and pixels.X.dtype == torch.float64
    assert torch.equal(pixels.X, pixels.X.round()) and pixels.X.min() == 0
    assert 200 < pixels.X.max() <= 255
    few = load(n_components=2, download=False)
    assert few.X.shape == (n, 2) and torch.equal(few.y, pixels.y)
    total = (pixels.X / 255).var(dim=0, correction=0).sum() * n  # the unit is that of pixels / 255
    assert 0.1 < few.X.square().sum() / total < 1 or name == "coil20"  # its scores are at 128 x 128
    if n < 2000:  # a second decomposition of the large ones would only take time
        many = load(download=False)
        torch.testing.assert_close(few.X, many.X[:, :2], rtol=0, atol=1e-8)


@REAL
def test_views_of_coil(tmp_path, monkeypatch):
    """Neighbouring angles of one object look alike: a step around is shorter than half a turn."""
    monkeypatch.setenv("DROT_CACHE", str(tmp_path / "none"))
    present("coil20")
    coil = data.load_coil20(download=False)
    assert coil.details["view"].tolist() == list(range(72)) * 20
    X = coil.X.reshape(20, 72, 50)
    step, half = ((X - X.roll(k, dims=1)).norm(dim=2).mean() for k in (1, 36))
    assert step < 0.6 * half


@REAL
def test_faces_are_upright(tmp_path, monkeypatch):
    """A face resembles its mirror image more than itself upside down."""
    monkeypatch.setenv("DROT_CACHE", str(tmp_path / "none"))
    present("olivetti")
    faces = data.load_olivetti(n_components=None, download=False).X.reshape(400, 64, 64)
    mean = faces.mean(dim=0)
    assert (mean - mean.flip(1)).norm() < 0.3 * (mean - mean.flip(0)).norm()
    torch.testing.assert_close(
        faces[0, 0, :3] / 242, torch.tensor([0.3099, 0.3678, 0.4174]).double(), rtol=0, atol=1e-4
    )


# The page of the book


def rows_of_the_page():
    """The table of the real data in book/datasets.md: name, size, classes."""
    rows = re.findall(
        r"^\| `(load_\w+)(?:\(\"?(\w*)\"?\))?` \|(.*)\|$", PAGE.read_text("utf8"), re.M
    )
    return [(f, a, [cell.strip() for cell in rest.split("|")]) for f, a, rest in rows]


def test_page_lists_every_loader():
    """Each loader has a row in the book, with its shape and its number of classes."""
    rows = rows_of_the_page()
    named = {f"{f.removeprefix('load_')}{'_' + a if a else ''}" for f, a, _ in rows}
    assert named == set(ORIGINS)
    for f, a, (size, classes) in rows:
        name = f"{f.removeprefix('load_')}{'_' + a if a else ''}"
        _, shape, counts, _ = REAL_DATA[name]
        assert tuple(map(int, size.split("×"))) == shape, name
        assert int(classes) == len(counts) == len(ORIGINS[name].label_names), name


def test_page_names_every_original():
    """The page names each repository at its commit, each original file, and each generator."""
    text = PAGE.read_text("utf8")
    for key, origin in ORIGINS.items():
        assert f"`{origin.file}`" in text
        for file, url in origin.urls.items():
            repository, commit = re.search(
                r"\.com/([^/]+/[^/]+)/(?:tar\.gz/)?([0-9a-f]{40})", url
            ).groups()
            assert repository in text and commit[:7] in text, url
            assert file in text
        names, counts = origin.label_names, REAL_DATA[key][2]
        assert len(names) == len(counts)
        if all(name.isdigit() for name in names) and len(names) == 10:
            *most, last = map(str, counts)
            assert f"{', '.join(most)} and {last} of the digits 0 to 9" in text, key
        elif len(names) < 20:
            for name, count in zip(names, counts, strict=True):
                assert f"{name} {count}" in text, name
    for toy in TOYS:
        assert f"`{toy}`" in text
