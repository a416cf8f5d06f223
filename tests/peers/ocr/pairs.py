"""Pairs of pictures whose lettering was edited: signs on photographs, one to three characters of one line changed.

The photographs and the typefaces come out of packages; nothing of them is kept in the repository.
"""

import importlib.util
import json
import random
import string
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

WORDS = (
    "open closed market street station parking exit bakery hotel museum library coffee garden bridge north south "
    "river fresh bread daily ticket office platform pharmacy school harbour police fire water sale price only today "
    "welcome please private road speed limit summer winter music theatre cinema travel repair service"
).split()
INKS = [((250, 250, 245), (30, 30, 30)), ((20, 60, 120), (245, 245, 245)), ((240, 200, 40), (20, 20, 20)),
        ((25, 100, 50), (240, 240, 240)), ((170, 20, 25), (250, 240, 230)), ((40, 40, 45), (235, 220, 120))]


def package(name):
    # Found, not imported: only their files are needed.
    return Path(importlib.util.find_spec(name).origin).parent


def photographs():
    found = [*(package("skimage") / "data").glob("*.jpg"), *(package("sklearn") / "datasets/images").glob("*.jpg")]
    found += [package("skimage") / "data" / f"{name}.png" for name in ("astronaut", "chelsea", "coffee", "motorcycle_left")]
    return [cv2.imread(str(path)) for path in sorted(found) if path.exists()]


def typefaces():
    folder = package("matplotlib") / "mpl-data/fonts/ttf"
    names = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSansMono")
    return [str(folder / f"{name}.ttf") for name in names]


def line(rng):
    kind = rng.randrange(4)
    if kind == 0:
        return " ".join(word.upper() for word in rng.sample(WORDS, rng.randint(1, 3)))
    if kind == 1:
        return " ".join(word.capitalize() for word in rng.sample(WORDS, rng.randint(1, 3)))
    if kind == 2:
        return f"{rng.choice(WORDS).capitalize()} {rng.randint(10, 9999)}"
    return "".join(rng.sample("ABCDEFGHKLMNPRSTUVWXYZ", rng.randint(2, 3))) + f"-{rng.randint(1000, 99999)}"


def edited(text, rng):
    """One to three characters become others of their kind."""
    letters = list(text)
    places = [at for at, letter in enumerate(letters) if letter.isalnum()]
    for at in rng.sample(places, min(len(places), rng.randint(1, 3))):
        old = letters[at]
        kind = string.digits if old.isdigit() else string.ascii_uppercase if old.isupper() else string.ascii_lowercase
        # What the typeface itself hardly tells apart is no test of reading.
        alike = [set("0OoQD"), set("1Iil"), set("cC"), set("sS5"), set("vV"), set("wW"), set("xX"), set("zZ2"), set("uU"), set("pP")]
        letters[at] = rng.choice([new for new in kind if new != old and not any({new, old} <= group for group in alike)])
    return "".join(letters)


def sign(lines, height, face, inks):
    """A board with lines whose capitals are about `height` pixels high; and the box of each line on it."""
    font = ImageFont.truetype(face, max(8, round(height / 0.73)))
    rim, gap = round(height * 0.9), round(height * 0.8)
    widths = [font.getlength(text) for text in lines]
    board = Image.new("RGB", (round(max(widths)) + 2 * rim, round(len(lines) * height + (len(lines) - 1) * gap) + 2 * rim), inks[0])
    draw = ImageDraw.Draw(board)
    boxes = []
    for at, text in enumerate(lines):
        base = rim + height + at * (height + gap)
        draw.text((rim, base), text, font=font, fill=inks[1], anchor="ls")
        boxes.append((rim, base - height, rim + widths[at], base))
    return np.asarray(board)[..., ::-1].copy(), boxes


def pair(seed, photos, faces, large):
    """Original, edited, and what was written where."""
    rng = random.Random(seed)
    photo = rng.choice(photos)
    wide = rng.randint(2000, 4096) if large else rng.randint(700, 1900)
    scene = cv2.resize(photo, (wide, round(photo.shape[0] * wide / photo.shape[1])), interpolation=cv2.INTER_CUBIC)
    noise = np.random.default_rng(seed).normal(0, 2, scene.shape)
    scene = np.clip(scene + noise, 0, 255).astype(np.uint8)
    height = rng.uniform(16, 22) if rng.random() < 0.5 else rng.uniform(22, 60)
    inks, face = rng.choice(INKS), rng.choice(faces)
    while True:
        lines = [line(rng) for _ in range(rng.randint(1, 3))]
        board, boxes = sign(lines, height, face, inks)
        if board.shape[1] < scene.shape[1] * 0.9 and board.shape[0] < scene.shape[0] * 0.9:
            break
        height = max(16, height * 0.7)
    changed = rng.randrange(len(lines))
    after = [edited(text, rng) if at == changed else text for at, text in enumerate(lines)]
    other, _ = sign(after, height, face, inks)
    other = cv2.copyMakeBorder(other, 0, 0, 0, max(0, board.shape[1] - other.shape[1]), cv2.BORDER_CONSTANT, value=inks[0][::-1])
    other = other[:, : board.shape[1]]
    # Where the new line is longer than its board, it would be cut.
    h, w = board.shape[:2]
    x, y = rng.randint(0, scene.shape[1] - w - 1), rng.randint(0, scene.shape[0] - h - 1)
    turn = cv2.getRotationMatrix2D((w / 2, h / 2), rng.choice([0, 0, rng.uniform(-4, 4)]), 1.0)
    turn[:, 2] += (x, y)
    size = scene.shape[1::-1]
    mask = cv2.warpAffine(np.full((h, w), 255, np.uint8), turn, size, flags=cv2.INTER_LINEAR)[..., None] / 255
    def put(board):
        laid = cv2.warpAffine(board, turn, size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        return (scene * (1 - mask) + laid * mask).astype(np.uint8)
    x1, y1, x2, y2 = boxes[changed]
    corners = cv2.transform(np.array([[(0, y1 - height * 0.6), (w, y1 - height * 0.6), (w, y2 + height * 0.6), (0, y2 + height * 0.6)]]), turn)[0]
    low, high = corners.min(0), corners.max(0)
    box = [max(0, int(low[0])), max(0, int(low[1])), min(size[0], int(high[0]) + 1), min(size[1], int(high[1]) + 1)]
    truth = {"seed": seed, "lines": lines, "before": lines[changed], "after": after[changed], "height": round(height, 1), "box": box, "size": list(size)}
    return put(board), put(other), truth


def make(folder, count, large, first=0):
    folder.mkdir(parents=True, exist_ok=True)
    photos, faces = photographs(), typefaces()
    truths = []
    for seed in range(first, first + count):
        original, other, truth = pair(seed, photos, faces, large)
        files = [folder / f"{seed}-original.png", folder / f"{seed}-edited.{'png' if seed % 2 else 'jpg'}"]
        cv2.imwrite(str(files[0]), original, [cv2.IMWRITE_PNG_COMPRESSION, 1])
        cv2.imwrite(str(files[1]), other, [cv2.IMWRITE_JPEG_QUALITY, 92] if seed % 2 == 0 else [cv2.IMWRITE_PNG_COMPRESSION, 1])
        truths.append({**truth, "files": [str(file) for file in files]})
    (folder / "truth.json").write_text(json.dumps(truths))
    return truths
