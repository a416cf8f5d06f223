"""Writes a set of picture pairs: the source, and the edited picture under one nuisance.

`pairs.json` names them with the true boxes, in pixels of the source.
"""

import argparse
import json
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import cv2
import numpy as np

import edits
import nuisances
import photos
import signs

PER_KIND = {"bench": 20, "stress": 16, "text": 9, "text-hard": 5}
KINDS = {
    "bench": nuisances.BENCHMARK,
    "stress": nuisances.STRESS,
    "text": nuisances.TEXT,
    "text-hard": nuisances.HARD,
}
UNEDITED_PER_NUISANCE = 4
STILL_THERE = 0.9  # an edit counts where this share of its box is left in the frame


def plan(which, per_kind=None):
    """(kind, nuisance, edited) for every pair of the set."""
    per_kind = per_kind or PER_KIND[which]
    pairs = [(kind, kind, True) for kind in KINDS[which] for _ in range(per_kind)]
    if which.startswith("text"):  # one of each kind is not edited
        pairs += [(f"unedited-{kind}", kind, False) for kind in KINDS[which]]
    if which == "stress":  # a large edit is regeneration, which is among the others already
        unedited = [name for name in {**nuisances.BENCHMARK, **nuisances.STRESS} if name != "large-edit"]
        pairs += [(f"unedited-{name}", name, False) for name in unedited for _ in range(UNEDITED_PER_NUISANCE)]
    return pairs


def make_set(pictures, out, which, seed, per_kind=None, only=None):
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    order = np.random.default_rng([seed, len(which)]).permutation(len(pictures))
    jobs = []
    for number, (kind, nuisance, edited) in enumerate(plan(which, per_kind)):
        if only not in (None, kind):
            continue  # skipped, not renumbered: the pairs stay the same ones
        # Neighbours in the order, so that all photographs are used before one comes again.
        picked = [pictures[order[(number + step) % len(order)]] for step in (0, 1)]
        jobs.append((out, number, kind, nuisance, edited, picked, seed))
    fresh = multiprocessing.get_context("spawn")  # a fork would inherit OpenCV's threads and hang
    with ProcessPoolExecutor(os.cpu_count(), fresh) as pool:
        pairs = list(pool.map(make_pair, jobs))
    (out / "pairs.json").write_text(json.dumps(pairs, indent=1))
    return pairs


def make_pair(job):
    out, number, kind, nuisance, edited, picked, seed = job
    cv2.setNumThreads(1)
    rng = np.random.default_rng([seed, number, len(kind)])
    if nuisance.startswith("text"):
        source, image, made = signs.draw_signs(photos.take(picked[0], rng, photos.LARGE), rng, edited)
    else:
        source, other = (photos.take(path, rng) for path in picked)
        image, made = (add_edits(source, other, kind == "large-edit", rng) if edited else (source, []))
    result, quality, kept = nuisances.ALL[nuisance](image, rng)
    for entry in made:
        entry["counts"] = share_inside(entry["box"], kept) >= STILL_THERE
    a, b = f"{number:03}-{kind}-a.png", f"{number:03}-{kind}-b.{'jpg' if quality else 'png'}"
    photos.save(out / a, source)
    if quality:
        cv2.imwrite(str(out / b), result, [cv2.IMWRITE_JPEG_QUALITY, quality])
    else:
        photos.save(out / b, result)
    return {
        "a": a,
        "b": b,
        "kind": kind,
        "photograph": picked[0].stem,
        "size": list(source.shape[1::-1]),
        "edited_size": list(result.shape[1::-1]),
        "edits": made,
    }


def add_edits(image, other, large, rng):
    made = []
    for _ in range(1 if large else int(rng.choice([1, 2, 3], p=[0.45, 0.35, 0.2]))):
        # Where one kind cannot be made visible on this picture, another one is tried.
        kinds = ["recolour", "paste"] if large else list(edits.KINDS)
        for kind in rng.permutation(kinds):
            done = edits.edit(image, other, kind, [entry["box"] for entry in made], rng, large)
            if done:
                image, box = done
                made.append({"what": str(kind), "box": box})
                break
    return image, made


def share_inside(box, frame):
    width = min(box[2], frame[2]) - max(box[0], frame[0])
    height = min(box[3], frame[3]) - max(box[1], frame[1])
    return max(0, width) * max(0, height) / ((box[2] - box[0]) * (box[3] - box[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", required=True, help="where photographs are kept")
    parser.add_argument("--out", required=True)
    parser.add_argument("--set", choices=list(PER_KIND), default="bench")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-kind", type=int)
    parser.add_argument("--photos", choices=["all", "even", "odd"], default="all", help="every second photograph")
    args = parser.parse_args()
    pictures = every_second(photos.collect(args.cache, photos.longest_of(args.set)), args.photos)
    pairs = make_set(pictures, args.out, args.set, args.seed, args.per_kind)
    print(f"{len(pairs)} pairs, {sum(len(p['edits']) for p in pairs)} edits from {len(pictures)} photographs")


def every_second(pictures, which):
    return {"all": pictures, "even": pictures[::2], "odd": pictures[1::2]}[which]


if __name__ == "__main__":
    main()
