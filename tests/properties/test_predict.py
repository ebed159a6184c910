"""New points of clusterings: where a little of their mass costs least, the plan held."""

import drot
import numpy as np
import pytest
import torch
from drot import DistR, SemiRelaxedGWClustering
from oracles import bandwidth_by_bisection, softmax
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

RNG = np.random.default_rng(0)
CENTRES = 6 * np.eye(4)
X, Y = (RNG.normal(size=(n, 4)) + CENTRES[np.arange(n) % 4] for n in (40, 12))
CLUSTERINGS = [
    (SemiRelaxedGWClustering, similarity, loss)
    for similarity in ("sqeuclidean", "symmetric_entropic", "gram", "precomputed")
    for loss in ("square", "kl")
    if (similarity, loss) != ("gram", "kl")  # inner products have both signs
]
REDUCTIONS = [
    (DistR, similarity, None)
    for similarity in ("symmetric_entropic", "symmetrized_entropic", "umap", "gram", "precomputed")
]
each = pytest.mark.parametrize(("estimator", "similarity", "loss"), CLUSTERINGS + REDUCTIONS)


def fitted(estimator, similarity, loss, k):
    more = {"n_neighbors": 6} if similarity == "umap" else {}
    more |= {"loss": loss} if loss else {}
    model = estimator(k, similarity=similarity, perplexity=6.0, random_state=0, **more)
    return model.fit(rbf_kernel(X) if similarity == "precomputed" else X)


def rows(similarity, new) -> np.ndarray:
    """Similarities of new points to the fitted ones, by their definitions."""
    square = ((new[:, None] - X[None]) ** 2).sum(axis=2)
    match similarity:
        case "precomputed":
            return rbf_kernel(new, X)
        case "sqeuclidean":
            return square
        case "gram":
            return linear_kernel(new - X.mean(axis=0), X - X.mean(axis=0))
        case "umap":
            own = np.r_["0", new, X]
            cost = drot.sqeuclidean(own).dense().numpy()
            found = []
            for i in range(len(new)):  # with the fitted points, and no other new one
                keep = [i, *range(len(new), len(own))]
                one = drot.umap_membership(cost[np.ix_(keep, keep)], n_neighbors=6)
                found.append(one.plan[0, 1:])
            return np.stack(found)
    widths = [bandwidth_by_bisection(row, 6.0) for row in square]
    return np.stack([softmax(row, eps) for row, eps in zip(square, widths, strict=True)])


@each
def test_a_new_point_goes_where_it_costs_least(estimator, similarity, loss):
    """Of E_L with the row and a mass of 1e-6, among all clusters of positive weight; the copies of
    fitted points, which scikit-learn's order leaves where they are, keep their labels."""
    model = fitted(estimator, similarity, loss, 4 if estimator is SemiRelaxedGWClustering else 7)
    result, C = model.result_, rows(similarity, Y)
    old = model._cost(torch.from_numpy(rbf_kernel(X) if similarity == "precomputed" else X))
    old = old if isinstance(old, torch.Tensor) else old.dense()
    old = old if similarity == "gram" else old.clamp(min=0)  # of factors to rounding
    structure = (result.structure + result.structure.T).numpy() / 2
    used = np.flatnonzero(result.weights)
    term = loss or ("square" if similarity == "gram" else "kl")
    assert result.labels.tolist() == model.labels_.tolist() and used.tolist() == [*range(len(used))]
    predicted, mass = model.predict(C if similarity == "precomputed" else Y), 1e-6
    for row, answer in zip(C, predicted, strict=True):
        whole = np.zeros((41, 41))
        whole[:40, :40], whole[40, :40], whole[:40, 40] = old, row, row
        values = {}
        for k in used:
            T = np.zeros((41, len(result.weights)))
            T[:40], T[40, k] = (1 - mass) * result.plan.numpy(), mass
            inside = np.ix_(used, used)
            value = drot.gw_objective(whole, structure[inside], T[:, used], loss=term)
            values[int(k)] = value
        best = min(values.values())
        assert values[int(answer)] <= best + 1e-3 * (max(values.values()) - best) + 1e-14


@each
def test_fitted_points_keep_their_labels(estimator, similarity, loss):
    model = fitted(estimator, similarity, loss, 4)
    known = rbf_kernel(X) if similarity == "precomputed" else X
    np.testing.assert_array_equal(model.predict(known), model.labels_)
    np.testing.assert_array_equal(model.predict(known[5:9]), model.labels_[5:9])
    new = rbf_kernel(Y, X) if similarity == "precomputed" else Y
    several = model.predict(new)
    np.testing.assert_array_equal(several, [model.predict(one[None])[0] for one in new])
    assert hasattr(model, "transform") == (estimator is DistR)
    if similarity not in ("gram", "precomputed"):  # these two see less of the blobs
        np.testing.assert_array_equal(several, model.labels_[:12])  # blobs come in turn
    if estimator is DistR:
        np.testing.assert_array_equal(model.transform(known), model.embedding_)
        np.testing.assert_allclose(model.transform(new), model.prototypes_[several])


@pytest.mark.parametrize(
    ("estimator", "similarity", "large"),
    [(DistR, "gram", 2.0**29), (SemiRelaxedGWClustering, "sqeuclidean", 2.0**30)],
)
def test_large_units_in_single_precision(estimator, similarity, large):
    """Powers of the data leave the range of float32; labels are those of 1."""
    ask = dict(similarity=similarity, dtype="float32", random_state=0)
    one, other = (estimator(4, **ask).fit(x) for x in (X, large * X))
    assert other.result_.converged
    np.testing.assert_array_equal(one.predict(Y), other.predict(large * Y))


def test_a_column_with_mass_that_is_no_label():
    """Of a soft plan, as a stopped run has it, such a column comes before those without mass."""
    T = torch.zeros(6, 4).double()
    T[:3, 0] = T[3:, 1] = 0.6
    T[:, 3] = 0.4
    ask = dict(similarity="precomputed", callback=lambda *_: True, random_state=0)
    C = np.eye(6) + np.kron(np.eye(2), np.ones((3, 3)))
    model = drot.DistR(4, init=T / 6, **ask).fit(C)
    assert (model.weights_[:3] > 0).all() and model.weights_[3] == 0
    new = np.ones((1, 6))
    np.testing.assert_array_equal(model.transform(new), model.prototypes_[model.predict(new)])
    clusters = drot.SemiRelaxedGWClustering(4, init=T / 6, **ask).fit(C)
    assert clusters.weights_.sum() == pytest.approx(1) and len(clusters.structure_) == 3


def test_a_similarity_of_0_is_no_copy():
    """Precomputed rows are no distances: a row with zeros is placed by its other entries."""
    C = np.kron(np.eye(2), np.ones((5, 5)))
    model = SemiRelaxedGWClustering(2, similarity="precomputed", random_state=0).fit(C)
    np.testing.assert_array_equal(model.predict(C[[5, 0]] / 2), model.labels_[[5, 0]])


def test_inner_products_are_taken_from_the_mean():
    """So a shift of all points changes nothing."""
    here, far = (fitted(SemiRelaxedGWClustering, "gram", "square", 4).fit(x) for x in (X, X + 50))
    assert far.objective_ == pytest.approx(here.objective_)
