"""DistR's Table 2 as printed, and the record, for their page in book/reproductions.

globals().update(runpy.run_path("../../benchmarks/distr_record.py"))    in a cell
"""

import statistics
from pathlib import Path
from runpy import run_path

import numpy as np
from IPython.display import Markdown
from scipy.stats import wilcoxon

_shared = run_path(str(Path(__file__).with_name("pages.py")))
read, put, table, one, signed = (
    _shared[name] for name in ("read", "put", "table", "one", "signed")
)
words, up_to, judged = (_shared[name] for name in ("words", "up_to", "judged"))
spread_of = _shared["spread_of"]

TITLES = {
    "coil20": "COIL-20",
    "mnist": "MNIST",
    "fashion": "Fashion-MNIST",
    "pbmc3k": "PBMC",
    "chromatin": "SNAREseq chromatin",
    "expression": "SNAREseq expression",
    "zeisel": "Zeisel, 7 classes",
    "zeisel_subclasses": "Zeisel, 48 classes",
}
SIX = list(TITLES)[:6]  # the sets of Table 2
CLASSES = dict(zip(TITLES, (20, 10, 10, 8, 4, 4, 7, 48), strict=True))
KINDS = {"sea": "SEA", "ea": "EA", "umap": "UMAP", "gram": "inner products"}
METHODS, PRINTED = ("DistR", "CDR", "DRC"), ("DistR", "centres", "DRC")
THREE = ("homogeneity", "silhouette", "nmi")
SCORES = (*THREE, "first", "used", "shared", "objective", "cpu_seconds")
PAPER = {  # Table 2: COIL, MNIST, FMNIST, PBMC, SNA1, SNA2
    ("sea", "DistR"): (99.5, 97.8, 93.4, 97.1, 100.0, 100.0),
    ("sea", "DRC"): (98.1, 93.3, 94.3, 96.3, 100.0, 100.0),
    ("sea", "CDR"): (100.0, 97.8, 93.4, 97.1, 100.0, 100.0),
    ("sea", "COOT"): (43.9, 9.8, 8.5, 15.9, 44.0, 49.7),
    ("gram", "DistR"): (96.8, 97.0, 93.4, 97.1, 80.5, 100.0),
    ("gram", "DRC"): (73.3, 98.3, 93.2, 90.2, 72.7, 90.0),
    ("gram", "CDR"): (83.7, 100.0, 93.4, 93.3, 80.5, 100.0),
    ("gram", "COOT"): (45.5, 13.7, 9.3, 16.1, 45.6, 76.5),
}
DEVIATIONS = {  # printed beside them
    ("sea", "DistR"): (0.6, 0, 0, 0, 0, 0),
    ("sea", "DRC"): (0.5, 3.4, 2.8, 0.9, 0, 0),
    ("sea", "CDR"): (0, 0, 0, 0, 0, 0),
    ("sea", "COOT"): (0.7, 3.0, 0.9, 1.9, 4.6, 8.6),
    ("gram", "DistR"): (0.7, 0.9, 0, 0.4, 0, 0),
    ("gram", "DRC"): (1.8, 3.4, 1.9, 1.4, 6.0, 20.0),
    ("gram", "CDR"): (0, 0, 0, 0, 0, 0),
    ("gram", "COOT"): (1.6, 2.1, 2.8, 2.4, 5.9, 16.6),
}
runs, (made, record) = {}, read("distr_tables")
put("dit_", made=made)
for row in record:
    name = row["data"] + " whole" * (row["n"] == "10000")
    key = name, row["similarity"], row["clustering"], row["method"]
    setting = int(row["perplexity"]), int(row["components"]), int(row["prototypes"])
    found = {score: float(row[score] or "nan") for score in SCORES}
    runs.setdefault(key, {}).setdefault(setting, []).append(found)


def settings(name, method, kind="sea", how=None):
    """The seeds of each setting; clusters are spectral, where there are any and none are named."""
    how = how or {"coot": "-", "none": "-"}.get(kind, "spectral")
    return runs.get((name, kind, how, method), {})


def seeds(name, method, setting, score, *where):
    return [run[score] for run in settings(name, method, *where)[setting]]


def mean(*what):
    return statistics.fmean(seeds(*what))


def best(name, method, score):
    """The setting of the highest mean, and the seeds there."""
    found = max(settings(name, method), key=lambda s: mean(name, method, s, score))
    return found, seeds(name, method, found, score)


said = []
for title, kind, grid, xi in (
    ("SEA, perplexity 50", "sea", 6, {50}),
    ("SEA, 20, 100 and 200", "sea", 18, {20, 100, 200}),
    ("EA", "ea", 24, {50}),
    ("UMAP", "umap", 24, {50}),
    ("inner products", "gram", 6, {0}),
):
    many = [
        [
            len(some)
            for s, some in settings(n, m, kind).items()
            if s[0] in xi and (kind != "gram" or s[1] == 10)
        ]
        for n in TITLES
        for m in METHODS
    ]
    (count,) = {len(some) for some in many}
    flat = sorted({k for some in many for k in some})
    single = sum(k == 1 for some in many for k in some) / sum(map(len, many))
    said.append([title, grid, count, " or ".join(map(str, flat)), f"{100 * single:.0f}"])
counts = table("similarity | full grid | ours | seeds | one seed, % of the settings", said)


def in_all(*verdicts):
    """The verdict on a claim of several parts: whether all of them hold, or some."""
    if set(verdicts) == {"holds"}:
        return "holds"
    return "differs" if set(verdicts) == {"differs"} else "in part"


# homogeneity: Table 2


def by_chance(name, k, score):
    """What labels drawn by chance score, at the recorded number that is nearest to k."""
    name = name.removesuffix(" whole")
    near = min(settings(name, "chance", "none"), key=lambda s: abs(s[2] - k))
    return mean(name, "chance", near, score, "none")


lines, counted, off, chances, own = [], [], {}, {}, {}
for place, short in enumerate(SIX):
    for name in (short, f"{short} whole"):
        for method in METHODS:
            if not settings(name, method):
                continue
            paper = PAPER["sea", method][place]
            setting, values = best(name, method, "homogeneity")
            few, drawn = best(name, method, "first")
            used = round(mean(name, method, few, "used"))
            chance = by_chance(name, used, "first")
            shown = TITLES[short] + ", 10\u00a0000" * (name != short)
            title = [shown * (method == "DistR"), method, paper]
            lines.append(
                [
                    *title,
                    spread_of(values),
                    setting[2],
                    one(by_chance(name, setting[2], "homogeneity")),
                ]
            )
            counted.append([*title, spread_of(drawn), used, one(chance)])
            assert statistics.fmean(values) < paper - 1  # by 1.2 at least, of all methods
            if method == "DistR":
                off[name] = [statistics.fmean(v) - paper for v in (values, drawn)]
                own[name] = statistics.fmean(values)
                chances[name] = chance
pure_table = table("data | method | *paper* | all points | at $k$ | by chance", lines, left=2)
pure_of_some = table("data | method | *paper* | $k$ points | at $k$ | by chance", counted, left=2)

least = [by_chance(name, CLASSES[name], "first") for name in SIX]
for at, tail in enumerate(("", "_drawn")):
    gaps = [off[name][at] for name in SIX]
    put("dit_", **{f"near{tail}": words(sum(abs(gap) <= 1 for gap in gaps))})
fully = [off[name][0] for name in SIX]
put(
    "dit_",
    own_low=one(min(own[name] for name in SIX)),
    own_high=one(max(own.values())),
    verdict_pure_table=judged(sum(abs(gap) <= 1 for gap in fully), 6),
    worst=signed(min(fully)),
    closest=signed(max(fully)),
)
put(
    "dit_",
    three_drawn=words(sum(abs(gap) <= 3 for gap in gaps)),
    drawn_low=signed(min(gaps)),
    drawn_high=signed(max(gaps)),
    chance_low=f"{min(chances.values()):.0f}",
    chance_high=f"{max(chances.values()):.0f}",
    chance_least=f"{min(least):.0f}",
    chance_most=f"{max(least):.0f}",
)
assert min(chances.values()) > 50 and min(least) > 30  # 69 and more
assert abs(statistics.fmean(gaps)) < abs(statistics.fmean(fully))  # 1, 9
for name in ("mnist", "fashion"):
    for k in (100, 300, 1000):
        value = mean(f"{name} whole", "k-means", (0, 50, k), "homogeneity", "points", "kmeans")
        put(f"dit_{name}_", **{str(k): one(value)})

# the best balance: Figure 3

PAIRS = {"silhouette": ("homogeneity", "silhouette"), "NMI": ("homogeneity", "nmi")}


def front(name, pair, kind, methods, how=None):
    """The method of the best sum of scores scaled to [0, 1]; if none beats DistR in both; sums."""
    at = {
        (m, s): np.array([mean(name, m, s, score, kind, how) for score in pair])
        for m in methods
        for s in settings(name, m, kind, how)
        if kind != "gram" or s[1] == 10
    }
    low, high = np.min(list(at.values()), axis=0), np.max(list(at.values()), axis=0)
    total = {key: float(((z - low) / np.maximum(high - low, 1e-9)).sum()) for key, z in at.items()}
    chosen = {m: max((key for key in total if key[0] == m), key=total.get) for m in methods}
    above = [key for key, z in at.items() if key[0] != "DistR" and (z > at[chosen["DistR"]]).all()]
    sums = {m: total[chosen[m]] for m in methods}
    return max(methods, key=sums.get), not above, sums


fronts = {
    (name, kind, what, rivals): front(name, pair, kind, rivals)
    for name in TITLES
    for kind in KINDS
    for what, pair in PAIRS.items()
    for rivals in (PRINTED, METHODS)
}
by_means = [front(n, w, "gram", PRINTED, "kmeans")[0] for n in TITLES for w in PAIRS.values()]
put("dit_", top_means=f"{by_means.count('DistR')} of 16")
shown = {
    key[:3]: top if on else f"**{top}**"
    for key, (top, on, _) in fronts.items()
    if key[3] == PRINTED
}
balance = Markdown(
    "\n\n".join(
        table(
            [f"with {what}", *KINDS.values()],
            [
                [title, *(shown[name, kind, what] for kind in KINDS)]
                for name, title in TITLES.items()
            ],
            left=5,
        ).data
        for what in PAIRS
    )
)


def ahead(kind, other, score, within=0):
    """In how many percent of the settings of all sets DistR is at least as good."""
    won = [
        mean(n, "DistR", s, score, kind) >= mean(n, other, s, score, kind) - within
        for n in TITLES
        for s in settings(n, "DistR", kind)
        if s in settings(n, other, kind) and (kind != "gram" or s[1] == 10)
    ]
    return 100 * statistics.fmean(won), len(won)


pairs = [
    ("CDR", THREE[0]),
    *((m, s) for m in ("centres", "CDR") for s in THREE[1:]),
    *(("DRC", s) for s in THREE),
]
share = {kind: [ahead(kind, *pair) for pair in pairs] for kind in KINDS}
names = [f"{other}, {score.replace('nmi', 'NMI')}" for other, score in pairs]
by_setting = table(
    ["DistR at least as good as", *KINDS.values()],
    [
        ["settings", *(share[kind][0][1] for kind in KINDS)],
        *(
            [f"{name}, %", *(f"{share[kind][at][0]:.0f}" for kind in KINDS)]
            for at, name in enumerate(names)
        ),
    ],
)

tops_of, front_of, lines = {}, {}, []
for rivals, word, tops in ((PRINTED, "front", "top_printed"), (METHODS, "ours", "top_ours")):
    for kind in KINDS:
        count = sum(all(fronts[n, kind, w, rivals][1] for w in PAIRS) for n in TITLES)
        put("dit_", **{f"{word}_{kind}": words(count) + " of eight" * (word == "front")})
        if word == "front":
            tops_of[kind] = sum(
                fronts[n, kind, w, rivals][0] == "DistR" for n in TITLES for w in PAIRS
            )
            front_of[kind] = count
            near = judged(tops_of[kind], 16), judged(count, 8)
            lines.append([KINDS[kind], tops_of[kind], near[0], count, near[1]])
            put("dit_top_", **{kind: f"{tops_of[kind]} of 16"})
            put("dit_verdict_", **{f"top_{kind}": near[0], f"front_{kind}": near[1]})
    put("dit_", **{tops: sum(v[0] == "DistR" for key, v in fronts.items() if key[3] == rivals)})
heads = "similarity | largest sum, of 16 | verdict | on the front, of 8 | verdict"
balance_verdicts = table(heads, lines)
strictly = judged(tops_of["ea"] + tops_of["umap"], 32)
mildly = judged(front_of["ea"] + front_of["umap"], 16)
put("dit_", verdict_6_both=in_all(strictly, mildly))
_lost = [
    key[0]
    for key, (top, *_) in fronts.items()
    if key[1] == "sea" and key[3] == PRINTED and top != "DistR"
]
assert _lost == ["pbmc3k", "pbmc3k"]  # "all but PBMC's two"
put("dit_", top_near=sum(tops_of[kind] for kind in ("sea", "ea", "umap")))


def mean_sums(rivals, *kinds):
    """Of each method, the mean of its sums over all sets and both pairs of scores."""
    some = [fronts[n, kind, w, rivals][2] for n in TITLES for kind in kinds for w in PAIRS]
    return {m: statistics.fmean(sums[m] for sums in some) for m in rivals}


def order(sums):
    return sorted(sums, key=sums.get, reverse=True)


for kind in ("sea", "gram"):
    sums = mean_sums(PRINTED, kind)
    put("dit_mean_", **{kind: ", ".join(f"{m} {one(sums[m], 2)}" for m in order(sums))})
steady = {}  # score: what the number of prototypes changes, DistR and its rivals
for score in THREE:
    spreads = {m: [] for m in ("DistR", "CDR", "centres", "DRC")}
    for name in TITLES:
        for xi in {s[0] for s in settings(name, "DistR")}:
            for m, some in spreads.items():
                at = [mean(name, m, s, score) for s in settings(name, m) if s[0] == xi]
                some.append(statistics.pstdev(at))
    mine, *theirs = (statistics.fmean(some) for some in spreads.values())
    steady[score] = mine <= min(theirs)
    put("dit_steady_", **{score: f"{one(mine)}, {one(min(theirs))} to {one(max(theirs))}"})
verdict = in_all(*("holds" if on else "differs" for on in steady.values()))
put("dit_", verdict_steady=verdict)


def granular(name, pair, kind="sea"):
    """The method whose sum of scaled scores, averaged over the numbers, is largest."""
    at = {
        (m, s): np.array([mean(name, m, s, score, kind) for score in pair])
        for m in PRINTED
        for s in settings(name, m, kind)
        if kind != "gram" or s[1] == 10
    }
    low, high = np.min(list(at.values()), axis=0), np.max(list(at.values()), axis=0)
    sums = {}
    for (m, s), z in at.items():
        sums.setdefault((m, s[0]), []).append(((z - low) / (high - low)).sum())
    return max(sums, key=lambda key: statistics.fmean(sums[key]))[0]


for kind in ("sea", "gram"):
    grain = [sum(granular(n, pair, kind) == "DistR" for n in TITLES) for pair in PAIRS.values()]
    put(
        f"dit_grain_{kind}_",
        both=" and ".join(map(words, grain)),
        verdict="holds" if min(grain) > 4 else "differs",
    )
for end, kinds in (("", ("sea", "gram")), ("_sea", ("sea",)), ("_gram", ("gram",))):
    first, second, _ = order(mean_sums(PRINTED, *kinds))
    claims = first == "DistR", second == "centres"
    verdict = in_all(*("holds" if claim else "differs" for claim in claims))
    put("dit_verdict_", **{f"second{end}": verdict})
assert order(mean_sums(METHODS, "sea")) == ["DistR", "CDR", "DRC"]  # "second"
for kind, rivals in ((kind, rivals) for kind in KINDS for rivals in (PRINTED, METHODS)):
    sums = mean_sums(rivals, kind)  # "balances best", "level"
    lead = sums["DistR"] - max(sums[m] for m in rivals[1:])
    assert abs(lead) < 0.05 if kind == "gram" else lead > 0.1  # 0.11; 0.02
assert order(mean_sums(METHODS, "gram"))[1] == order(mean_sums(METHODS, "sea", "gram"))[1] == "CDR"
for name, rivals in (("both_kinds", PRINTED), ("ours", METHODS)):
    sums = mean_sums(rivals, "sea", "gram")
    put("dit_mean_", **{name: ", ".join(f"{m} {one(sums[m], 2)}" for m in order(sums))})
pure, sil, ours = (share["sea"][i][0] for i in (0, 1, 3))
general = [share["sea"][i][0] for i in (1, 2, 6, 7)]  # the paper's CDR, and DRC
own_general = [share["sea"][i][0] for i in (3, 4)]  # our CDR
put("dit_", own_general=f"{min(own_general):.0f} to {max(own_general):.0f}")
put("dit_general_", low=f"{min(general):.0f}", high=f"{max(general):.0f}")
put("dit_", verdict_general="holds" if min(general) > 50 else "differs")
put("dit_", cells=len(shown), pure_sea=f"{pure:.0f}", verdict_pure=judged(pure, 100))
put("dit_", pure_near=f"{ahead('sea', 'CDR', THREE[0], within=1)[0]:.0f}")
assert sil > ours + 10  # 85 and 60 %
for name in TITLES:
    for kind in KINDS:
        for s, some in settings(name, "DistR", kind).items():
            for other in ("CDR", "DRC"):
                for mine, theirs in zip(some, settings(name, other, kind)[s], strict=True):
                    assert mine["objective"] <= theirs["objective"] * (1 + 1e-6) + 1e-12

# inner products and COOT


def purest(name, method, kind, components):
    some = [s for s in settings(name, method, kind) if s[1] == components]
    return max(mean(name, method, s, "homogeneity", kind) for s in some)


COLUMNS = {("gram", m): ("gram", 10) for m in METHODS}
COLUMNS |= {("gram", "COOT"): ("coot", 10), ("sea", "COOT"): ("coot", 2)}
linear = {(name, key): purest(name, key[1], *how) for name in SIX for key, how in COLUMNS.items()}
heads = (
    "data | DistR, *paper* | ours | CDR, *paper* | ours | DRC, *paper* | ours",
    "data | COOT in 10, *paper* | ours | in 2, *paper* | ours",
)
parts = [
    [
        [TITLES[name], *(v for key in keys for v in (PAPER[key][i], one(linear[name, key])))]
        for i, name in enumerate(SIX)
    ]
    for keys in (list(COLUMNS)[:3], list(COLUMNS)[3:])
]
pure_linear = Markdown("\n\n".join(table(*pair).data for pair in zip(heads, parts, strict=True)))

tens = [min(linear[n, ("gram", m)] for m in METHODS) > linear[n, ("gram", "COOT")] for n in SIX]
twos = [min(purest(n, m, "sea", 2) for m in METHODS) > linear[n, ("sea", "COOT")] for n in SIX]
for kind in ("sea", "gram"):
    assert all(PAPER[kind, "COOT"][i] < min(PAPER[kind, m][i] for m in METHODS) for i in range(6))
coot = {(n, key): linear[n, key] for n in SIX for key in list(COLUMNS)[3:]}
close = sum(abs(value - PAPER[key][SIX.index(n)]) <= 1 for (n, key), value in coot.items())
above = sum(value > PAPER[key][SIX.index(n)] for (n, key), value in coot.items())
assert above == 12 and close == 0  # "on all sets", "no score"
pure = linear | {
    (n, ("sea", m)): statistics.fmean(best(n, m, "homogeneity")[1]) for n in SIX for m in METHODS
}
other = [
    pure[n, key] - PAPER[key][i]
    for i, n in enumerate(SIX)
    for key in PAPER
    if key[1] in METHODS and key != ("sea", "DistR")
]
near = sum(abs(gap) <= 1 for gap in other)
by_deviation = [
    abs(value - PAPER[key][SIX.index(n)]) <= 2 * DEVIATIONS[key][SIX.index(n)]
    for (n, key), value in pure.items()
]
assert near == 0
put(
    "dit_",
    coot_above=above,
    other_near=words(near),
    other_above=words(sum(gap > 0 for gap in other)),
    other_verdict=judged(near, 30),
    by_deviation=words(sum(by_deviation)),
    of_all=len(by_deviation),
    close_all=words(near + close + sum(abs(v[0]) <= 1 for n, v in off.items() if n in SIX)),
)
put("dit_coot_own_", low=one(min(coot.values())), high=one(max(coot.values())))
put("dit_", verdict_coot_own=judged(close, 12))
put(
    "dit_",
    coot_last_2=words(sum(twos)),
    coot_last_10=words(sum(tens)),
    verdict_coot=judged(sum(twos + tens), 12),
)
assert linear["mnist", ("gram", "COOT")] > 30  # 48, the mean of three seeds

assert min(tops_of[kind] for kind in ("ea", "umap")) > 8  # "mostly"

# spectral clusters or k-means: F.7

starts, lines = {}, []
for name, title in TITLES.items():
    for how in ("spectral", "kmeans"):
        cells = [f"{title}, spectral" if how == "spectral" else "by k-means"]
        for method in METHODS[::-1]:
            other = settings(name, method, "sea", "kmeans")  # as many seeds of both
            for score in THREE:
                values = [
                    v
                    for s in other
                    if s[0] == 50
                    for v in seeds(name, method, s, score, "sea", how)[: len(other[s])]
                ]
                starts[name, how, method, score] = statistics.fmean(values)
                if method == "DistR" or score == "homogeneity":
                    cells.append(one(statistics.fmean(values)))
        lines.append(cells)
by_clusters = table("data and clusters | hom.: DRC | CDR | DistR | sil. | NMI", lines)


def lead(name, method, score):
    """What spectral clusters score more."""
    return starts[name, "spectral", method, score] - starts[name, "kmeans", method, score]


def in_the_mean(gain):
    """Above 0 in the mean; without the largest over a point too."""
    over = statistics.fmean(gain) >= 0.05, statistics.fmean(sorted(gain)[:-1]) > 1
    return "holds" if all(over) else "holds by one set" if over[0] else "differs"


gap = {m: max(abs(lead(n, m, "homogeneity")) for n in TITLES) for m in METHODS}
gains = {score[:3]: [lead(n, "DistR", score) for n in TITLES] for score in THREE[1:]}
both = [sum(gain) for gain in zip(*gains.values(), strict=True)]  # the trade-off of the two
put("dit_", **{f"mean_{score}": signed(statistics.fmean(gain)) for score, gain in gains.items()})
put("dit_", mean_both=signed(statistics.fmean(both)))
put("dit_", less_both=signed(statistics.fmean(sorted(both)[:-1])))
own = {score: [lead(n, "CDR", score) for n in TITLES] for score in THREE}
put(
    "dit_cdr_",
    mean=", ".join(signed(statistics.fmean(g)) for g in own.values()),
    less=", ".join(signed(statistics.fmean(sorted(g)[:-1])) for g in own.values()),
)
alike = -statistics.fmean(lead(n, "DRC", "silhouette") for n in TITLES)
data = []  # the same over k-means of the data, which are the clusters of inner products
for step in (0, 40, 100):
    at = [(name, CLASSES[name] + step) for name in TITLES]
    data.append(
        [
            mean(name, "CDR", (50, 2, k), "homogeneity")
            - mean(name, "CDR", (0, 10, k), "homogeneity", "gram", "kmeans")
            for name, k in at
        ]
    )
assert max(abs(statistics.fmean(gain)) for gain in data[1:]) < 1  # "as good"
put(
    "dit_",
    cdr_data=", ".join(signed(statistics.fmean(gain)) for gain in data),
    verdict_cdr_data=in_all(*map(in_the_mean, data)),
)
put(
    "dit_",
    verdict_cdr=in_all(*map(in_the_mean, own.values())),
    drc_sil=signed(alike),
    verdict_drc_sil="holds" if abs(alike) <= 1 else "differs",
)
purer = sum(lead(n, "DRC", "homogeneity") < 0 for n in TITLES)
same = statistics.fmean(lead(n, "DistR", "homogeneity") for n in TITLES)
put(
    "dit_",
    how_CDR=f"{gap['CDR']:.0f}",
    how_DistR=up_to(gap["DistR"]),
    how_drc=words(purer),
    verdict_how=in_the_mean(both),
    mean_hom=signed(same),
    verdict_similar="holds" if abs(same) <= 1 else "differs",
    verdict_drc=judged(purer, 8),
)
assert gap["CDR"] > 2 * gap["DistR"]  # 50 points and 1

# in the hyperbolic plane: F.10

bent = {}  # data -> score -> centres, CDR and DistR, and DistR in the plane
for name in TITLES:
    at = 50, 2, CLASSES[name] + 40
    bent[name] = {
        s: (
            *(mean(name, m, at, s, "hyperbolic") for m in ("centres", "CDR", "DistR")),
            seeds(name, "DistR", at, s)[0],
        )
        for s in THREE
    }
heads = dict(
    zip(THREE, ("homogeneity: CDR", "silhouette: centres | CDR", "NMI: centres | CDR"), strict=True)
)
bent_tables = Markdown(
    "\n\n".join(
        table(
            f"data | {head} | DistR | in the plane",
            [
                [TITLES[name], *map(one, found[score]["centres" not in head :])]
                for name, found in bent.items()
            ],
        ).data
        for score, head in heads.items()
    )
)

gains = {
    (s, m): [found[s][2] - found[s][at] for found in bent.values()]
    for s in THREE
    for at, m in enumerate(("centres", "own"))
}
above = {m: sum(gain > 0 for gain in gains["silhouette", m]) for m in ("centres", "own")}
lower = sum(found["silhouette"][2] < found["silhouette"][3] for found in bent.values())
pure, agree = gains["homogeneity", "own"], gains["nmi", "centres"]
put(
    "dit_hyp_",
    silhouette=words(above["centres"]),
    own=words(above["own"]),
    plane=f"{words(lower)} of eight",
    gain_nmi=signed(statistics.fmean(agree)),
    own_nmi=signed(statistics.fmean(gains["nmi", "own"])),
    gain_homogeneity=signed(statistics.fmean(pure)),
)
for at, gain in gains.items():  # by signed ranks, both sides; then sets of the same cells as one
    once = [*gain[:4], statistics.fmean(gain[4:6]), statistics.fmean(gain[6:])]
    short = "_".join(at).replace("_own", "").replace("_centres", "_over")
    put(
        "dit_p_",
        **{short: f"{wilcoxon(gain).pvalue:.2g}", f"{short}_once": f"{wilcoxon(once).pvalue:.2g}"},
    )
over = gains["silhouette", "own"]
put(
    "dit_hyp_",
    over_centres=signed(statistics.fmean(gains["silhouette", "centres"])),
    over_own=signed(statistics.fmean(over)),
    less_own=signed(statistics.fmean(sorted(over)[:-1])),
    most=[TITLES[name] for name in bent][over.index(max(over))],
    to_plane=signed(
        statistics.fmean(f["silhouette"][2] - f["silhouette"][3] for f in bent.values())
    ),
)
put(
    "dit_verdict_",
    gain=in_the_mean(pure),
    hyp=judged(above["centres"], 8),
    hyp_nmi=in_the_mean(agree),
    hyp_all=in_all(judged(above["centres"], 8), in_the_mean(agree), in_the_mean(pure)),
)

# solvers, shared points, curvature

SOLVERS = ("CG", "MD", "DistR")
lines, curvature, solved = [], {}, {}
for name, title in TITLES.items():
    at = 50, 2, CLASSES[name] + 40
    ends = solved[name] = [settings(name, m)[at][0] for m in ("CDR", *SOLVERS)]
    for kind in ("sea", "ea"):
        least = mean(name, "CPD", (50, 0, CLASSES[name]), "objective", kind, "-")
        curvature[name, kind] = least
    lines.append(
        [
            title,
            *(one(1e5 * end["objective"]) for end in ends),
            *(one(end["homogeneity"]) for end in ends[1:]),
            *(
                f"{curvature[name, kind]:.1e}".replace("e-0", "e-").replace("-", "−")
                for kind in ("sea", "ea")
            ),
        ]
    )
heads = (
    "data | $10^5 E$: CDR | CG | MD | DistR",
    "data | homogeneity: CG | MD | DistR",
    "data | least eigenvalue: SEA | EA",
)
parts = [
    table(head, [[line[0], *line[a:b]] for line in lines])
    for head, (a, b) in zip(heads, ((1, 5), (5, 8), (8, 10)), strict=True)
]
plan_tables, curvature_table = Markdown("\n\n".join(p.data for p in parts[:2])), parts[2]

by_cg = sum(ends[1]["homogeneity"] >= ends[0]["homogeneity"] for ends in solved.values())
put("dit_", pure_cg=words(by_cg))
cg, md, ours = np.array([[end["objective"] for end in ends[1:]] for ends in solved.values()]).T
shared = {}  # not every run was asked how many points share mass
for (_, kind, _, method), at in runs.items():
    if method == "DistR":  # MD's shares die slowly: benchmarks count them all
        shared.setdefault((KINDS | {"hyperbolic": "hyperbolic"})[kind], []).extend(
            run["shared"] for some in at.values() for run in some if run["shared"] >= 0
        )
hard = {title: sum(count == 0 for count in some) for title, some in shared.items()}
hard_table = table(
    "plans of | runs counted | none shared | most shared | verdict",
    [
        [
            f"DistR, {title}",
            len(some),
            hard[title],
            f"{max(some):.0f}",
            judged(hard[title], len(some)),
        ]
        for title, some in shared.items()
    ],
)
alone = sum(ends[1]["shared"] == 0 for ends in solved.values())
put(
    "dit_",
    solvers=up_to(100 * abs(cg / md - 1).max()),
    hard_none=f"{sum(hard.values())} of {sum(map(len, shared.values()))}",
    hard_less=f"{sum(hard.values()) - hard['UMAP']} of "
    f"{sum(len(some) for title, some in shared.items() if title != 'UMAP')}",
    below=f"{100 * np.mean(1 - ours / np.minimum(cg, md)):.0f}",
    hard_cg=words(alone),
    verdict_hard_cg=judged(alone, 8),
    verdict_hard=judged(sum(hard.values()), sum(map(len, shared.values()))),
)
positive = {
    kind: sum(curvature[n, kind] >= -1e-12 for n in list(TITLES)[:7]) for kind in ("sea", "ea")
}
put("dit_cpd_", **{kind: words(count) for kind, count in positive.items()})
put("dit_", verdict_cpd=judged(positive["sea"], 7))
