"""Graph coupling's Tables 2 and 3, printed and recorded, for their page in book/reproductions.

globals().update(runpy.run_path("../../benchmarks/graph_coupling_verdicts.py"))    in a cell
"""

import statistics
from pathlib import Path
from runpy import run_path

from IPython.display import Markdown

_shared = run_path(str(Path(__file__).with_name("pages.py")))
read, put, one, table = (_shared[name] for name in ("read", "put", "one", "table"))
signed, spread_of, words, up_to = (
    _shared[name] for name in ("signed", "spread_of", "words", "up_to")
)

TITLES = {"mnist": "MNIST", "fashion": "Fashion-MNIST"}
made, rows = read("graph_coupling_tables")
KS, STARTS = ("quarter", "half"), ("random", "PCA", "Laplacian", "ccPCA")
scores = {}  # (data, n, method, start, variant) -> {K: one value per seed}
for row in rows:
    key = row["data"], int(row["n"]), row["method"], row["start"], row["variant"]
    at = scores.setdefault(key, {K: [] for K in KS})
    for K in KS:
        at[K].append(float(row[K]))
large = {}  # of the balanced samples where they were run, else of all 10 000 images
for n in (10_000, 9720, 8920):
    large |= {(key[0], *key[2:]): found for key, found in scores.items() if key[1] == n}


def mean(name, method, start, variant="-"):
    return statistics.fmean(large[name, method, start, variant]["half"])


put("gct_", made=made)

PAPER = {  # as printed: mean and spread at n/4, at n/2
    ("mnist", "openTSNE"): {
        "random": (18.7, 2.2, 7.4, 5.1),
        "PCA": (28.4, 0.3, 21.9, 0.2),
        "Laplacian": (26.7, 0.7, 18.5, 0.4),
        "ccPCA": (31.3, 0.4, 28.5, 1.2),
    },
    ("fashion", "openTSNE"): {
        "random": (27.2, 4.3, 12.3, 7.8),
        "PCA": (36.9, 0.1, 28.5, 0.2),
        "Laplacian": (32.0, 0.8, 25.1, 2.2),
        "ccPCA": (41.6, 0.9, 35.7, 1.5),
    },
    ("mnist", "UMAP"): {
        "random": (29.5, 1.4, 22.7, 2.2),
        "PCA": (36.6, 0.2, 31.1, 0.5),
        "Laplacian": (34.6, 0.2, 24.9, 0.7),
        "ccPCA": (33.4, 0.3, 32.3, 0.5),
    },
    ("fashion", "UMAP"): {
        "random": (48.7, 2.6, 33.6, 9.5),
        "PCA": (56.2, 0.5, 54.3, 0.6),
        "Laplacian": (58.1, 0.5, 53.4, 0.6),
        "ccPCA": (58.9, 0.5, 55.8, 0.3),
    },
}


def against_paper(method, variant="-"):
    """A table of one method, ours beside the paper's."""
    lines = {K: [] for K in KS}
    for name, title in TITLES.items():
        for start in STARTS:
            a, da, b, db = PAPER[name, method][start]
            found = large[name, method, start, variant]
            for K, value, spread in zip(KS, (a, b), (da, db), strict=True):
                lines[K].append(
                    [
                        title * (start == "random"),
                        start,
                        f"{value} ± {spread}",
                        spread_of(found[K]).replace("\u00a0±", " ±"),
                        signed(statistics.fmean(found[K]) - value),
                    ]
                )
            if variant == "plain":
                lines["half"][-1].append(one(mean(name, "start", start)))
    return Markdown(
        "\n\n".join(
            table(f"$K = n/{part}$ | start | *paper* | here | diff.{more}", lines[K], left=2).data
            for K, part, more in (
                ("quarter", 4, ""),
                ("half", 2, " | start alone" * (variant == "plain")),
            )
        )
    )


WAYS = {"plain": ("openTSNE", "plain"), "exag": ("openTSNE", "-"), "umap": ("UMAP", "-")}


def leads(name, way, other, K="half"):
    """ccPCA minus another start, seed by seed; what has no seed counts for all."""
    method, variant = WAYS[way]
    first, second = (large[name, method, start, variant][K] for start in ("ccPCA", other))
    size = max(len(first), len(second))
    first, second = (values * (size // len(values)) for values in (first, second))
    return [a - b for a, b in zip(first, second, strict=True)]


end = {
    (name, way, start): mean(name, method, start, variant=variant)
    for name in TITLES
    for way, (method, variant) in WAYS.items()
    for start in STARTS
}
for name in TITLES:
    for way, (method, variant) in WAYS.items():
        printed = PAPER[name, method]
        found = large[name, method, "random", variant]["half"]
        put(f"gct_{name}_{way}_", random_half=spread_of(found))
        for other in ("PCA", "Laplacian"):
            put(
                f"gct_{name}_{way}_{other.lower()}_",
                lead=spread_of(leads(name, way, other), signed),
                printed=signed(printed["ccPCA"][2] - printed[other][2]),
            )
    pca, ccpca_own = (mean(name, "start", start) for start in ("PCA", "ccPCA"))
    assert pca > end[name, "plain", "PCA"] + 10  # 12 and 18
    assert ccpca_own > end[name, "plain", "ccPCA"] + 3  # 5 and 16
    assert pca > ccpca_own + 3  # 8 and 6
    # the printed random start is like the plain one: 1 to 2 away, not 15 and 38
    random = PAPER[name, "openTSNE"]["random"][2]
    assert abs(end[name, "plain", "random"] - random) + 5 < abs(
        end[name, "exag", "random"] - random
    )
    for way, (method, _) in WAYS.items():
        put(
            f"gct_{name}_{way}_",
            printed=", ".join(one(PAPER[name, method][s][2]) for s in STARTS[1:]),
            ours=", ".join(one(end[name, way, s]) for s in STARTS[1:]),
        )
_hold = {  # scores within two printed deviations
    (name, way, start, K)
    for name in TITLES
    for way, (method, variant) in WAYS.items()
    for start in STARTS
    for K, at in zip(KS, (0, 2), strict=True)
    if abs(
        statistics.fmean(large[name, method, start, variant][K]) - PAPER[name, method][start][at]
    )
    <= 2 * PAPER[name, method][start][at + 1]
}
assert _hold == {  # as the page says
    *((name, "plain", "random", K) for name in TITLES for K in KS),
    *(("fashion", "umap", "random", K) for K in KS),
    ("mnist", "umap", "random", "quarter"),
    ("fashion", "umap", "Laplacian", "quarter"),
    ("mnist", "exag", "ccPCA", "half"),
}
assert all(abs(statistics.fmean(leads(n, "umap", "Laplacian", "quarter"))) < 2 for n in TITLES)
for way, key in (("plain", "gct_"), ("exag", "gct_exag_")):
    many = [
        statistics.fmean(leads(name, descent, other, K))
        for name in TITLES
        for descent in (way, "umap")
        for other in ("PCA", "Laplacian")
        for K in KS
    ]
    better, worse = sum(lead > 1 for lead in many), sum(lead < -1 for lead in many)
    put(key, ahead=words(better), worse=words(worse), least=signed(min(many)))
    assert 2 * better < 16 and worse <= 3 and min(many) > -4  # 1, 3, -3.8; printed 13, 2, -3.2
_printed = [
    PAPER[key]["ccPCA"][K] - PAPER[key][other][K]
    for key in PAPER
    for other in ("PCA", "Laplacian")
    for K in (0, 2)
]
assert [sum(x > 1 for x in _printed), sum(x < -1 for x in _printed)] == [13, 2]
_quarter = [signed(statistics.fmean(leads(n, "plain", "Laplacian", "quarter"))) for n in TITLES]
put("gct_", quarter_laplacian=" and ".join(_quarter))
quarters = {
    (name, start): statistics.fmean(large[name, "UMAP", start, "-"]["quarter"])
    for name in TITLES
    for start in ("ccPCA", "PCA")
}
two = [signed(quarters[name, "ccPCA"] - quarters[name, "PCA"]) for name in TITLES]
put("gct_", quarter_leads=" and ".join(two))
for other in ("PCA", "Laplacian"):  # plain, all 10 000 images
    means = {
        (name, start): statistics.fmean(scores[name, 10_000, "openTSNE", start, "plain"]["half"])
        for name in TITLES
        for start in ("ccPCA", other)
    }
    two = [signed(means[name, "ccPCA"] - means[name, other]) for name in TITLES]
    put("gct_many_", **{other.lower(): " and ".join(two)})
small = {(*key[::2], key[3]): at["half"][0] for key, at in scores.items() if key[1] == 2000}
spans = []  # of the plain scales, the most of ccPCA minus the least of PCA
for name in TITLES:
    ours, pca = (
        [small[name, "openTSNE", way, s] for way in ("plain", "plain 1e-4", "plain 5", "plain 25")]
        for s in ("ccPCA", "PCA")
    )
    rest = [small[name, "t-SNE", "-", s] for s in STARTS]
    assert max(a - b for a, b in zip(ours, pca, strict=True)) < 0  # at one scale: -0.2
    spans.append(max(ours) - min(pca))
    put(
        f"gct_{name}_",
        early=one(small[name, "openTSNE", "plain", "random"]),
        late=one(rest[0]),
        rest=f"{one(min(rest[1:]))} to {one(max(rest[1:]))}",
    )
put("gct_", any_scale=up_to(max(spans)))
informed = [end["fashion", "plain", s] for s in STARTS[1:]]
behind = max(end[n, "exag", s] - end[n, "exag", "random"] for n in TITLES for s in STARTS)
put(
    "gct_",
    exag_behind=one(behind),
    scale=one(mean("mnist", "openTSNE", "random", variant="scale 1")),
)
assert min(informed) > 35.7 + 10 and behind < 10  # 56; 3.5
lead = {(name, way): statistics.fmean(leads(name, way, "PCA")) for name in TITLES for way in WAYS}
assert lead["fashion", "plain"] < -2 < abs(lead["mnist", "plain"]) < 1  # -3.8, 0.0
assert max(abs(lead[name, "umap"]) for name in TITLES) < 2  # 0.5
assert lead["mnist", "exag"] < 4  # 0.7, where the paper has 6.6
gaps = {name: [PAPER[name, "UMAP"][s][2] - end[name, "umap", s] for s in STARTS] for name in TITLES}
assert min(gaps["mnist"]) > 0 and max(map(abs, gaps["fashion"][1:])) < 6  # 3.5; 5.6
lost = [min(end[n, "umap", s] for s in STARTS[1:]) - end[n, "umap", "random"] for n in TITLES]
put("gct_", umap_lost=" and ".join(map(one, lost)))
for start in ("PCA", "ccPCA"):
    value = mean("mnist", "UMAP", start, variant="pixels")
    put("gct_pixels_", **{start.lower(): one(value)})
    assert value < PAPER["mnist", "UMAP"][start][2] - 5  # 11 and more
