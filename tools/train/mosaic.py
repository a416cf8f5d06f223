"""Puts drawn scenes together to pictures of 2K, four to a picture, and asks only for what is small in
them: what searching in windows is worth. Measure with the example `recall`:

    python mosaic.py --scenes scenes/test --out scenes/2k
    cargo run --release -p deeplook-tools --example recall -- LIBRARY MODEL scenes/2k
"""

import argparse
import json
import shutil
from pathlib import Path

from PIL import Image

SMALL = 0.0016  # The largest part of the picture that an object's box may cover.


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scenes", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    by_size, made = {}, []
    for line in map(json.loads, (args.scenes / "objects.jsonl").read_text().splitlines()):
        with Image.open(args.scenes / line["file"]) as picture:
            by_size.setdefault(picture.size, []).append(line)
    for size, lines in by_size.items():
        if 960 <= max(size) <= 1024:
            fours = [lines[at : at + 4] for at in range(0, len(lines) - 3, 4)]
            made += [mosaic(args, size, four, f"{len(made) + at + 1:05}.png") for at, four in enumerate(fours)]
    (args.out / "objects.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made))
    shutil.copy(args.scenes / "vocabulary.txt", args.out)


def mosaic(args, size, lines, file):
    width, height = size
    whole, objects = Image.new("RGB", (2 * width, 2 * height)), []
    for number, line in enumerate(lines):
        x, y = number % 2 * width, number // 2 * height
        whole.paste(Image.open(args.scenes / line["file"]), (x, y))
        for thing in line["objects"]:
            x1, y1, x2, y2 = thing["box"]
            objects.append({"phrase": thing["phrase"], "box": [x1 + x, y1 + y, x2 + x, y2 + y]})
    whole.save(args.out / file)
    small = {thing["phrase"] for thing in objects if part(thing["box"], whole.size) < SMALL}
    # All of that name: a large one is a right answer too.
    return {"file": file, "objects": [thing for thing in objects if thing["phrase"] in small]}


def part(box, size):
    return (box[2] - box[0]) * (box[3] - box[1]) / (size[0] * size[1])


if __name__ == "__main__":
    main()
