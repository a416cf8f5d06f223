"""Compares `deeplook tool read_text` with RapidOCR, and both with what is written there."""

import json
import subprocess
import sys
import time
from pathlib import Path

import cv2
from rapidocr import RapidOCR

import pairs

# What we aim at, and what the short form must not fall below: of its 99 lines and 16 edits 97 are as RapidOCR has them,
# 13 are read right in whole pictures and 15 in crops.
SAME, RIGHT = (0.98, 0.9) if "--full" in sys.argv else (0.95, 0.75)


def read(deeplook, files, args):
    command = [deeplook, "tool", "read_text", *files, "--args", json.dumps(args), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"ocr: {' '.join(command)} failed: {done.stderr}")
    return json.loads(done.stdout)["data"]


def says(rows, text):
    """Spaces are the reader's guess, and a row may hold more than the line that is looked for."""
    bare = "".join(text.split())
    return any(bare in "".join(row["text"].split()) for row in rows)


def main():
    deeplook, folder = sys.argv[1], Path(sys.argv[2])
    full = "--full" in sys.argv[3:]
    peer = RapidOCR(params={"Global.log_level": "error"})
    lines = same = edits = whole = cropped = told = 0
    start = time.time()
    # The test of reading right is only as good as what it was not tuned on: seeds are fixed here, once.
    for name, count, large in (("small", 60 if full else 12, False), ("large", 40 if full else 4, True)):
        for truth in pairs.make(folder / name, count, large, first=5000):
            files = truth["files"]
            both = read(deeplook, files, {})
            edits += 1
            right = [says(picture["rows"], truth[side]) for picture, side in zip(both["pictures"], ("before", "after"))]
            whole += all(right)
            told += any(not pair["same"] and pair["original"] and pair["edited"]
                        and says([pair["original"]], truth["before"]) and says([pair["edited"]], truth["after"])
                        for pair in both["aligned"])
            if not all(right):
                print(f"not right: {truth['before']!r} → {truth['after']!r} of {truth['height']} px:",
                      [[row["text"] for row in picture["rows"]] for picture in both["pictures"]], files[0])
            crops = read(deeplook, files, {"bbox": truth["box"]})
            cropped += all(says(p["rows"], truth[side]) for p, side in zip(crops["pictures"], ("before", "after")))
            # The same crops, and pictures that RapidOCR does not reduce, must give the same lines.
            readings = [(file, picture) for file, picture in zip(files, crops["pictures"])]
            if not large:
                readings += zip(files, both["pictures"])
            for file, picture in readings:
                x1, y1, x2, y2 = (round(edge) for edge in picture["bbox"])
                theirs = peer(cv2.imread(file)[y1:y2, x1:x2]).txts or ()
                ours = [line["text"] for line in picture["lines"]]
                lines += len(theirs)
                for text in theirs:
                    if text in ours:
                        ours.remove(text)
                        same += 1
                    else:
                        print(f"RapidOCR reads {text!r}, we have {ours} left; {file} {picture['bbox']}")
    print(f"ocr: {same} of {lines} lines as RapidOCR has them; of {edits} edits {whole} read right in whole pictures, "
          f"{cropped} in crops, {told} told as changed; {time.time() - start:.0f} s")
    if lines < 20 or same < SAME * lines:
        sys.exit(f"ocr: failed: fewer than {SAME} of the lines are as RapidOCR has them")
    if min(whole, cropped) < RIGHT * edits:
        sys.exit(f"ocr: failed: fewer than {RIGHT} of the edits are read right in both pictures")


main()
