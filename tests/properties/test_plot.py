"""Pictures of maps: what is drawn where, under which name, and in which colours."""

from types import SimpleNamespace

import drot
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest
import torch
from drot.plot import draw_graph, panels, scale_bar, scatter
from matplotlib.colors import to_rgb
from matplotlib.offsetbox import AnnotationBbox
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

matplotlib.use("Agg")
RNG = np.random.default_rng(0)
Z = RNG.normal(size=(40, 2)) + 9 * np.repeat([0, 1], 20)[:, None]
WORDS = np.repeat(["B cell", "T cell"], 20)
# What pandas calls a Categorical, its third category unused.
CATEGORIES = SimpleNamespace(categories=("T cell", "B cell", "other"), codes=np.repeat([1, 0], 20))


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def drawn(ax):
    """Positions of each name in the legend or on the map."""
    return {
        c.get_label(): np.asarray(c.get_offsets()) for c in ax.collections if len(c.get_offsets())
    }


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (WORDS.astype(object), None),
        (WORDS.tolist(), None),
        (np.repeat([3, 7], 20), {3: "B cell", 7: "T cell"}),
        (torch.arange(40) // 20, ["B cell", "T cell"]),
        (CATEGORIES, None),
        (SimpleNamespace(cat=CATEGORIES), None),
    ],
)
def test_each_class_stands_where_its_points_are_under_its_name(y, names):
    ax = scatter(Z, y, names=names)
    assert {text.get_text() for text in ax.texts} == {"B cell", "T cell"}
    for text in ax.texts:
        here = Z[text.get_text() == WORDS]
        assert np.abs(here - text.get_position()).sum(axis=1).min() < 1e-9
        np.testing.assert_allclose(drawn(ax)[text.get_text()], here)
    assert not len(ax.get_xticks()) and not len(ax.get_yticks())


def test_names_beside_their_classes_hide_no_point():
    crowd = np.concatenate([RNG.normal(size=(60, 2)) * 0.01, RNG.normal([8, 0], size=(60, 2))])
    y = np.repeat(["spot", "cloud"], 60)
    ax = scatter(crowd, y, beside=True)
    assert {text.get_text() for text in ax.texts} == {"spot", "cloud"}
    gap = 0.07 * np.ptp(crowd, axis=0).max()
    for text in ax.texts:
        assert np.linalg.norm(crowd - text.get_position(), axis=1).min() > gap
        near = crowd[y == text.get_text()]
        assert np.linalg.norm(near - text.xy, axis=1).min() == 0  # where its line ends
    full = np.stack(np.meshgrid(np.arange(30), np.arange(30)), axis=-1).reshape(-1, 2)
    assert len(scatter(full, np.zeros(900), beside=True).texts) == 1  # no place is free


def test_what_has_no_class_is_grey_and_has_no_name():
    for dtype, nothing in ((object, None), (object, pandas.NA), ("string", pandas.NA)):
        y = pandas.Series(WORDS, dtype=dtype)
        y[:5] = nothing
        ax = scatter(Z, y)
        grey = [c for c in ax.collections if len(set(c.get_facecolor()[0, :3].round(3))) == 1]
        assert [len(c.get_offsets()) for c in grey] == [5]
    assert len(scatter(Z).collections[0].get_offsets()) == 40


def test_as_many_prototypes_as_points_have_the_classes_of_their_own_points():
    turn = np.roll(np.arange(40), 1)  # point i is the prototype turn[i]
    found = SimpleNamespace(Z=Z, plan=np.eye(40)[turn] / 40, weights=np.ones(40) / 40)
    numbers = scatter(found, Z[:, 0]).collections[0].get_array()
    np.testing.assert_allclose(numbers[turn], Z[:, 0])


@pytest.mark.parametrize("make", [np.asarray, lambda y: pandas.Series(y).convert_dtypes()])
@pytest.mark.parametrize("y", [np.linspace(0, 1, 60), np.arange(60.0), np.arange(60)])
def test_many_numbers_are_a_scale_of_colours(y, make):
    """Whole ones too; without the one that is missing. Fifty are classes, and so are named ones."""
    y = make(y.tolist() if make is np.asarray else [*y.tolist(), None])
    here = Z[np.arange(len(y)) % 40]
    ax = scatter(here, y)
    np.testing.assert_allclose(ax.collections[0].get_array()[:60].filled(), y[:60].astype(float))
    assert not ax.texts
    whole = np.arange(60) % 50
    assert len(scatter(here[:60], whole).texts) == 50
    assert len(scatter(here[:60], np.arange(60), names=[*map(str, range(60))]).texts) == 60


@pytest.mark.parametrize("look", ["default", "dark_background"])
def test_twenty_classes_differ_in_colour_or_form_and_from_the_ground(look):
    with plt.style.context(look):
        ax = scatter(np.repeat(Z, 2, axis=0), np.arange(80) % 20, ax=plt.subplots()[1])
    forms = {
        (color, str(np.round(c.get_paths()[0].vertices, 2)))
        for c in ax.collections
        for color in [tuple(c.get_facecolor()[0, :3].round(3))]
    }
    assert len(forms) == 20

    def light(color):
        part = np.array(to_rgb(color))
        part = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
        return part @ [0.2126, 0.7152, 0.0722] + 0.05

    ground = light(ax.get_facecolor()[:3])
    for collection in ax.collections:
        ratio = light(collection.get_facecolor()[0, :3]) / ground
        assert max(ratio, 1 / ratio) > 2.9


def test_prototypes_are_discs_of_their_weight_in_the_class_of_their_points():
    model = drot.DistR(4, perplexity=8, random_state=0).fit(Z)
    used, weight, areas = int((model.weights_ > 0).sum()), [], []
    for c in scatter(model, WORDS).collections:
        for place, area in zip(c.get_offsets(), c.get_sizes(), strict=True):
            j = np.abs(model.prototypes_ - place).sum(axis=1).argmin()
            mass = model.plan_[:, j]
            assert mass[c.get_label() == WORDS].sum() >= 0.5 * mass.sum()
            weight.append(mass.sum())
            areas.append(area)
    assert len(areas) == used
    np.testing.assert_allclose(areas / np.sum(areas), weight / np.sum(weight))
    pictures = scatter(model.result_, images=RNG.random((40, 5, 5)))
    assert sum(isinstance(a, AnnotationBbox) for a in pictures.artists) == used
    piped = make_pipeline(StandardScaler(), clone(model)).fit(Z)
    assert len(scatter(piped, WORDS).texts) == 2
    named = scatter(Z, WORDS, images=RNG.random((40, 5, 5)))
    assert {t.get_text() for t in named.texts} == set(WORDS)


def test_points_with_weights_are_no_prototypes():
    """Only a plan makes prototypes: degrees of a graph are no sizes."""
    W = (-drot.sqeuclidean(Z).dense() / 50).exp()
    found = drot.spectral.laplacian_eigenmaps(W, 2)
    sizes = [c.get_sizes() for c in scatter(found).collections]
    plain = [c.get_sizes() for c in scatter(found.Z).collections]
    np.testing.assert_array_equal(sizes, plain)


def test_a_graph_may_be_an_affinity_and_may_have_no_edges():
    found = drot.entropic_affinity(drot.sqeuclidean(Z), perplexity=3.0)
    segments = []
    for weights in (found, found.plan, np.zeros((40, 40)), -np.ones((40, 40))):
        ax = plt.subplots()[1]
        draw_graph(ax, Z, weights)
        segments.append(ax.collections[0].get_segments())
    np.testing.assert_array_equal(segments[0], segments[1])
    assert segments[2] == segments[3] == []


@pytest.mark.parametrize("scale", [1e-3, 0.7, 400.0])
def test_a_scale_bar_is_a_power_of_ten_that_fits_its_map(scale):
    ax = scatter(scale * Z)
    scale_bar(ax, scale * Z)
    x, y = ax.lines[0].get_data()
    assert x[1] - x[0] == pytest.approx(float(ax.texts[0].get_text()))
    assert 0.3 < (x[1] - x[0]) / float(np.std(scale * Z)) < 3.2
    assert max(y) < (scale * Z)[:, 1].min()


def test_hyperbolic_prototypes_lie_in_the_disc():
    v = RNG.normal(size=(9, 2)) * 5
    lorentz = np.concatenate([np.hypot(1, np.linalg.norm(v, axis=1))[:, None], v], axis=1)
    ax = scatter(lorentz, np.arange(9))
    places = np.concatenate([c.get_offsets() for c in ax.collections])
    np.testing.assert_allclose(places, drot.hyperbolic.to_poincare(lorentz).numpy())
    assert len(ax.patches) == 1


def test_letters_have_ten_pixels_on_a_telephone():
    for axes in (panels(1), panels(2), panels(3), panels(5), panels(2, columns=1)):
        for ax in axes:
            text = scatter(Z, WORDS, ax=ax, title="a map").texts[0]
            assert text.get_fontsize() / 72 * 350 / ax.figure.get_figwidth() > 10
            assert ax.title.get_fontsize() == text.get_fontsize()
        assert len({ax.figure for ax in axes}) == 1
        axes[0].figure.canvas.draw()
