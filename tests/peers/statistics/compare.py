"""Random and degenerate tables, labels and runs: do our numbers equal those of the reference packages?"""

import csv
import json
import math
import random
import subprocess
import sys
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import krippendorff
import numpy as np
from scipy import stats
from sklearn.metrics import cohen_kappa_score, confusion_matrix, mean_absolute_error

DEEPLOOK, WORK = sys.argv[1], Path(sys.argv[2])
CLOSE = 1e-9
LABELS = {
    "if": ["Localization Failure", "Wrong Action", "Over Modification", "Flawless Execution"],
    "vc": ["Scene Collapse", "Multiple Anomalies", "Single Anomaly", "Perfect Consistency"],
}
LEVELS = ["nominal", "ordinal", "interval"]
warnings.simplefilter("ignore")


def defined(compute):
    """A number, or None where the reference has none: not a number, or a refusal."""
    try:
        value = float(compute())
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def reference(columns, ordered=True):
    """The statistics of two columns and the alphas of all; None in a cell is a missing rating."""
    data = np.array([[np.nan if cell is None else cell for cell in column] for column in columns], dtype=float)
    found = {}
    pairs = [(a, b) for i, a in enumerate(columns) for b in columns[i + 1:]]
    each = [pair_reference(a, b) for a, b in pairs]
    for key in ["spearman", "pearson", "mae", "kappa_quadratic", "exact"]:
        values = [one[key] for one in each if one[key] is not None]
        found[key] = float(np.mean(values)) if values else None
    if len(each) == 1:
        found["p"] = each[0]["p"]
    for level in LEVELS:
        found[f"alpha_{level}"] = defined(lambda: krippendorff.alpha(data, level_of_measurement=level))
    found["n"] = int(sum((~np.isnan(data)).sum(axis=0) >= 2))
    if not ordered:
        for key in found.keys() - {"n", "exact", "alpha_nominal"}:
            found[key] = None
    return found


def pair_reference(a, b):
    both = [(x, y) for x, y in zip(a, b) if x is not None and y is not None]
    x, y = [x for x, _ in both], [y for _, y in both]
    whole = all(float(v).is_integer() for v in x + y)
    pearson = (lambda: stats.pearsonr(x, y)) if both else (lambda: (math.nan, math.nan))
    return {
        "spearman": defined(lambda: stats.spearmanr(x, y)[0]),
        "pearson": defined(lambda: pearson()[0]),
        "mae": defined(lambda: mean_absolute_error(x, y)),
        "kappa_quadratic": defined(lambda: cohen_kappa_score([int(v) for v in x], [int(v) for v in y], weights="quadratic"))
        if whole else None,
        "exact": defined(lambda: np.mean([u == v for u, v in both])) if both else None,
        "p": {
            "pearson": defined(lambda: pearson()[1]),
            "spearman": defined(lambda: stats.spearmanr(x, y)[1]),
        },
    }


def number(value):
    return value["value"] if isinstance(value, dict) else value


COMPARED = Counter()


def same(ours, theirs, where):
    COMPARED["undefined" if theirs is None else "defined"] += 1
    if theirs is None or ours is None:
        assert ours is None and theirs is None, f"{where}: ours {ours}, theirs {theirs}"
    else:
        assert abs(ours - theirs) <= CLOSE * max(1.0, abs(theirs)), f"{where}: ours {ours!r}, theirs {theirs!r}"


def run(*arguments):
    done = subprocess.run([DEEPLOOK, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    assert "NaN" not in done.stdout and "inf" not in done.stdout.replace("\"inf", ""), arguments
    return json.loads(done.stdout)


def check_table(task):
    number_of, columns, written, ordered = task
    path = WORK / "tables" / f"{number_of}.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item"] + [f"rater {i}" for i in range(len(columns))])
        for i, row in enumerate(zip(*columns)):
            writer.writerow([i] + ["" if cell is None else written(cell) for cell in row])
    ours, theirs = run("agree", "--table", path, "--json"), reference(columns, ordered)
    assert ours["n"] == theirs["n"], f"{path}: n"
    for key in theirs.keys() - {"n", "p"}:
        same(number(ours[key]), theirs[key], f"{path}: {key}")
        if isinstance(ours[key], dict):
            assert ours[key]["low"] <= ours[key]["high"], f"{path}: {key}"
    for name, p in (theirs.get("p") or {}).items():
        # With three points a rounding of r at ±1 moves p by 1e-8.
        if theirs[name] is not None and abs(theirs[name]) > 1 - 1e-12:
            assert p is None and ours["p"][name] is None or ours["p"][name] < 1e-6 or theirs["n"] == 2, f"{path}: p"
        else:
            same(ours["p"][name], p, f"{path}: p of {name}")


def tables():
    """Tables as (columns, how a cell is written, whether the values have an order)."""
    chance = random.Random(20260)
    plain = lambda cell: f"{cell:g}" if float(cell).is_integer() else repr(cell)
    column = lambda n, draw: [draw() for _ in range(n)]
    with_holes = lambda values, part: [None if chance.random() < part else v for v in values]
    whole = lambda: chance.randint(1, 4)
    draws = [
        whole, lambda: chance.randint(1, 2), lambda: chance.randint(-3, 9), lambda: chance.choice([1, 2, 4]),
        lambda: chance.choice([0, 100]), lambda: 3, lambda: chance.gauss(0, 1), lambda: 1e6 + chance.random(),
        lambda: chance.choice([0.5, 1.5, 2]), lambda: chance.random() * 1e-6, lambda: chance.randint(0, 10**6),
    ]
    for draw in draws:
        for n in [0, 1, 2, 2, 3, 3, 4, 5, 8, 20, 60]:
            a = column(n, draw)
            for b in [column(n, draw), list(a), column(n, whole), [a[0]] * n if a else []]:
                holes = chance.choice([0, 0, 0.2, 0.6])
                yield [with_holes(a, holes), with_holes(b, holes)], plain, True
        for raters in [3, 4, 6]:
            n, holes = chance.choice([1, 2, 5, 30]), chance.choice([0, 0.3, 0.7])
            yield [with_holes(column(n, draw), holes) for _ in range(raters)], plain, True
    for labels in LABELS.values():
        for n in [1, 2, 3, 5, 12, 40]:
            for raters in [2, 2, 4]:
                holes = chance.choice([0, 0.3])
                columns = [with_holes(column(n, whole), holes) for _ in range(raters)]
                yield columns, lambda rank, labels=labels: labels[rank - 1], True
    for n in [2, 5, 30]:
        words = ["red", "green", "blue"]
        yield [column(n, lambda: chance.randint(1, 3)) for _ in range(2)], lambda w: words[w - 1], False
    long = column(3000, whole)
    yield [long, [min(4, max(1, v + chance.randint(-1, 1))) for v in long]], plain, True


def check_runs():
    """A run beside the labels of four annotators, and two runs beside each other."""
    chance = random.Random(4242)
    cases = [(f"case {i}", ["Change Color", "Removal Object", "Change Count"][i % 3]) for i in range(120)]
    truth, judged, labels = {}, [{}, {}], []
    for case, _ in cases:
        for criterion, names in LABELS.items():
            middle = chance.randint(1, 4)
            near = lambda: min(4, max(1, middle + chance.choice([-1, 0, 0, 0, 1])))
            given = {f"annotator {i}": near() for i in range(4) if chance.random() < 0.8}
            labels += [(case, "editor", criterion, who, names[rank - 1]) for who, rank in given.items()]
            if given:
                truth[criterion, case] = list(given.values())
            for side in judged:
                side[criterion, case] = near() if chance.random() < 0.9 else None
    kinds = dict(cases)
    with (WORK / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("case", "editor", "criterion", "annotator", "label"), *labels])
    for number_of, side in enumerate(judged):
        with (WORK / f"run{number_of}.jsonl").open("w") as file:
            for (criterion, case), rank in side.items():
                line = {"case": case, "editor": "editor", "criterion": criterion, "type": kinds[case]}
                line |= {"label": LABELS[criterion][rank - 1]} if rank else {"outcome": "failed", "reason": "none"}
                file.write(json.dumps(line) + "\n")
    middles = {"mean": np.mean, "median": np.median, "majority": lambda ranks: stats.mode(ranks).mode}
    for rule, middle in middles.items():
        ours = run("agree", WORK / "run0.jsonl", "--labels", WORK / "labels.csv", "--truth", rule, "--json")
        assert ours["truth"] == rule
        for cell in ours["judges"][0]["cells"]:
            rows = [
                (judged[0][key], float(middle(ranks))) for key, ranks in truth.items()
                if cell["criterion"] in (None, key[0]) and cell["type"] in (None, kinds[key[1]])
            ]
            x, y = zip(*[row for row in rows if row[0] is not None])
            nearest = [math.ceil(value - 0.5) for value in y]
            where = f"{rule}, {cell['criterion']}, {cell['type']}"
            assert cell["coverage"] == {"answered": len(x), "all": len(rows)}, where
            found = cell["agreement"]
            same(number(found["spearman"]), stats.spearmanr(x, y)[0], where)
            same(number(found["pearson"]), stats.pearsonr(x, y)[0], where)
            same(number(found["mae"]), mean_absolute_error(x, y), where)
            same(number(found["kappa_quadratic"]), cohen_kappa_score(x, nearest, weights="quadratic"), where)
            same(number(found["exact"]), np.mean(np.equal(x, nearest)), where)
            if cell["criterion"] and not cell["type"]:
                [matrix] = [m for m in ours["judges"][0]["confusion"] if m["criterion"] == cell["criterion"]]
                counts = confusion_matrix(nearest, x, labels=[1, 2, 3, 4]).tolist()
                assert [row[:4] for row in matrix["counts"]] == counts, where
                assert sum(row[4] for row in matrix["counts"]) == len(rows) - len(x), where
    by_item = {}
    for case, _, criterion, who, label in labels:
        by_item.setdefault((criterion, case), {})[who] = LABELS[criterion].index(label) + 1
    for cell in ours["among_annotators"]:
        items = [
            given for key, given in by_item.items()
            if cell["criterion"] in (None, key[0]) and cell["type"] in (None, kinds[key[1]])
        ]
        data = [[given.get(f"annotator {i}", np.nan) for given in items] for i in range(4)]
        for level in LEVELS:
            theirs = krippendorff.alpha(data, level_of_measurement=level)
            same(number(cell["agreement"][f"alpha_{level}"]), theirs, f"annotators, {cell['criterion']}, {level}")
    check_comparison(judged)


def check_comparison(judged):
    ours = run("compare", WORK / "run0.jsonl", WORK / "run1.jsonl", "--json")
    for one in ours["criteria"][1:]:
        keys = [key for key in judged[0] if key[0] == one["criterion"] and judged[0][key] and judged[1][key]]
        differences = [judged[1][key] - judged[0][key] for key in keys]
        better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
        assert one["better_worse_same"] == [better, worse, len(keys) - better - worse]
        same(number(one["difference"]), np.mean(differences) * 100 / 3, one["criterion"])
        same(one["p_sign"], stats.binomtest(better, better + worse).pvalue, one["criterion"])
        # Two samples of 20,000 flips.
        flips = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", vectorized=True, n_resamples=20000, rng=1
        )
        assert abs(one["p_permutation"] - flips.pvalue) < 0.02, f"{one['p_permutation']}, {flips.pvalue}"
        boot = stats.bootstrap((differences,), np.mean, n_resamples=4000, method="percentile", rng=1)
        for end, theirs in zip(("low", "high"), boot.confidence_interval):
            assert abs(one["difference"][end] - theirs * 100 / 3) < 1.5, one["criterion"]


def main():
    (WORK / "tables").mkdir(parents=True, exist_ok=True)
    tasks = [(i, *table) for i, table in enumerate(tables())]
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(check_table, tasks):
            pass
    check_runs()
    assert min(COMPARED.values()) > 500, COMPARED
    print(
        f"statistics: {len(tasks)} tables and two runs: {COMPARED['defined']} numbers equal those of scipy, scikit-learn "
        f"and krippendorff to {CLOSE}, and {COMPARED['undefined']} are undefined here and there"
    )


main()
