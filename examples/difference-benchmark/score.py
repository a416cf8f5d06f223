"""Scores `deeplook tool localize_differences` on small edits under nuisance.

A region hits an edit if it covers half of the changed box and is at most 16 times its size or
2 % of the picture. Recall: the edits hit. Precision: of the regions, those that hit an edit. Two
sorts of region count neither way: fragments mostly inside an edit already hit (grown by 1 % of
the long side), and regions on edits the nuisance cut off. The strict column counts both as false.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MOST_REGIONS = 8
COVER, TIMES, SHARE = 0.5, 16, 0.02
GROWN = 0.01
FLOORS = {"bench": (0.98, 0.97), "stress": (0.97, 0.93), "text": (0.98, 0.97), "text-hard": (0.95, 0.95)}
KIND_FLOORS = {"bench": (0.93, 0.90), "text": (0.93, 0.90)}
KIND_FLOOR = {"text-redrawn-detail": (0.85, 0.85)}  # where details moved, small ones cannot all be told apart
UNEDITED_FLOOR = 0.02  # boxes per unedited pair


def find(binary, folder, pair):
    """The regions the tool reports, or None if it failed."""
    command = [sys.executable, binary] if binary.endswith(".py") else [binary]
    command += ["tool", "localize_differences", str(folder / pair["a"]), str(folder / pair["b"]), "--json"]
    run = subprocess.run(command, capture_output=True, text=True)
    try:
        return [region["bbox"] for region in json.loads(run.stdout)["data"]["regions"]][:MOST_REGIONS]
    except (ValueError, KeyError, TypeError):
        print(f"{pair['a']}: {run.stderr.strip() or 'no JSON'}", file=sys.stderr)
        return None


def judge(pair, regions):
    """Which edits were found and whether each region is true, false or beside the point."""
    width, height = pair["size"]
    boxes = [edit["box"] for edit in pair["edits"]]
    hits = [[hit(region, box, width * height) for box in boxes] for region in regions]
    found = [any(row[i] for row in hits) for i in range(len(boxes))]
    reach = GROWN * max(width, height)
    verdicts = []
    for region, row in zip(regions, hits):
        on = [i for i in range(len(boxes)) if row[i]]
        if any(pair["edits"][i]["counts"] for i in on):
            verdicts.append("true")
        elif on or any(
            overlap(region, grow(box, reach)) >= 0.5 * area(region)
            for box, edit, was_found in zip(boxes, pair["edits"], found)
            if was_found or not edit["counts"]
        ):
            verdicts.append("ignored")
        else:
            verdicts.append("false")
    return found, verdicts


def hit(region, box, picture):
    fits = area(region) <= max(TIMES * area(box), SHARE * picture)
    return fits and overlap(region, box) >= COVER * area(box)


def area(box):
    return max(0, box[2] - box[0]) * max(0, box[3] - box[1])


def overlap(a, b):
    return area([max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])])


def grow(box, by):
    return [box[0] - by, box[1] - by, box[2] + by, box[3] + by]


def score_set(folder, binary, only=None, list_errors=False):
    """Counts per kind, per sort of edit and over all edited pairs."""
    folder = Path(folder)
    pairs = json.loads((folder / "pairs.json").read_text())
    pairs = [pair for pair in pairs if only in (None, pair["kind"])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(lambda pair: find(binary, folder, pair), pairs))
    counts = defaultdict(lambda: defaultdict(int))
    for pair, regions in zip(pairs, answers):
        found, verdicts = judge(pair, regions or [])
        group = "all edited" if pair["edits"] else "all unedited"
        for row in (pair["kind"], group):
            counts[row]["pairs"] += 1
            counts[row]["failed"] += regions is None
            for verdict in verdicts:
                counts[row][verdict] += 1
        for edit, was_found in zip(pair["edits"], found):
            if edit["counts"]:
                for row in (pair["kind"], "all edited", f"edit: {edit['what']}"):
                    counts[row]["edits"] += 1
                    counts[row]["found"] += was_found
                if list_errors and not was_found:
                    print(f"  missed {edit['what']} {edit['box']} in {pair['a']} ({pair['photograph']})")
        for region, verdict in zip(regions or [], verdicts):
            if list_errors and verdict == "false":
                print(f"  false {region} in {pair['a']} ({pair['photograph']})")
    return {row: figures(count) for row, count in counts.items()}


def figures(count):
    regions = count["true"] + count["false"]
    every = regions + count["ignored"]
    return {
        "edits": count["edits"],
        "found": count["found"],
        **count,
        "recall": count["found"] / count["edits"] if count["edits"] else None,
        "precision": count["true"] / regions if regions else None,
        "strict": count["true"] / every if every else None,
    }


def show(title, rows):
    print(f"\n{title:28} pairs edits recall precision strict false boxes")
    for row, count in sorted(rows.items(), key=lambda item: item[0].startswith(("all", "edit:"))):
        recall, precision, strict = (
            "" if count[name] is None else f"{count[name]:.3f}" for name in ("recall", "precision", "strict")
        )
        pairs, false = count.get("pairs", ""), count["false"] if "pairs" in count else ""
        print(f"{row:28} {pairs:>5} {count['edits']:>5} {recall:>6} {precision:>9} {strict:>6} {false:>11}")


def shortfalls(which, rows):
    """Every floor the figures are under, in words."""
    under = []
    for row, count in rows.items():
        floor = FLOORS[which] if row == "all edited" else KIND_FLOOR.get(row, KIND_FLOORS.get(which))
        for name, least in zip(("recall", "precision"), floor or ()):
            if not row.startswith("edit:") and count[name] is not None and count[name] < least:
                under.append(f"{which}, {row}: {name} {count[name]:.3f} is under {least}")
        if count.get("failed"):
            under.append(f"{which}, {row}: the tool failed on {count['failed']} pairs")
    unedited = rows.get("all unedited")
    if unedited and unedited.get("false", 0) > max(1, UNEDITED_FLOOR * unedited["pairs"]):
        under.append(f"{which}: {unedited['false']} boxes on {unedited['pairs']} unedited pairs")
    return under


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/deeplook")
    parser.add_argument("--dir", nargs="+", help="score sets that exist already, instead of making them")
    parser.add_argument("--cache", default="target/difference-benchmark", help="where photographs are kept")
    parser.add_argument("--keep", help="keep the sets made in this folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-kind", type=int, help="pairs of each kind")
    parser.add_argument("--photos", choices=["all", "even", "odd"], default="all", help="every second photograph")
    parser.add_argument("--only", metavar="KIND", help="one kind, such as redrawn, relit or unedited-reframed")
    parser.add_argument("--set", nargs="+", choices=list(FLOORS), help="these sets (default: all)")
    parser.add_argument("--list", action="store_true", help="name every missed edit and false region")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(folder) for folder in args.dir or make_sets(args, Path(args.keep or scratch))]
        results = {str(folder): score_set(folder, args.binary, args.only, args.list) for folder in folders}
    under = []
    for folder, rows in results.items():
        which = max((which for which in FLOORS if Path(folder).name.startswith(which)), key=len, default="bench")
        if not args.json:
            show(Path(folder).name, rows)
        under += shortfalls(which, rows)
    if args.json:
        print(json.dumps({"sets": results, "under": under}, indent=1))
    else:
        print("\n" + "\n".join(under or ["All figures are above the floors."]))
    sys.exit(1 if under else 0)


def make_sets(args, root):
    import make_pairs
    import photos

    folders = []
    for which in args.set or FLOORS:
        pictures = make_pairs.every_second(photos.collect(args.cache, photos.longest_of(which)), args.photos)
        print(f"{which}: {len(pictures)} photographs, seed {args.seed}", file=sys.stderr)
        if not pictures:
            sys.exit("No photographs could be fetched.")
        if make_pairs.make_set(pictures, root / which, which, args.seed, args.per_kind, args.only):
            folders.append(root / which)
    return folders or sys.exit(f"There is no kind {args.only}.")


if __name__ == "__main__":
    main()
