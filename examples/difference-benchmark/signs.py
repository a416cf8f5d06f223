"""Signs with lettering on a photograph, and edits of one to three of their characters."""

import cv2
import numpy as np

SMALLEST, LARGEST = 11, 68  # height of capitals, in pixels
CHANGED = 10  # levels in any channel; less is the rim of a stroke
UNCHANGED = 2  # signs that stay as they are
LETTERS = "ABCDEFGHJKLMNPRSTUVXYZ"
DIGITS = "0123456789"
FONTS = (cv2.FONT_HERSHEY_SIMPLEX, cv2.FONT_HERSHEY_DUPLEX, cv2.FONT_HERSHEY_COMPLEX, cv2.FONT_HERSHEY_TRIPLEX)
COLOURS = [  # ground and ink, blue first
    ((235, 238, 240), (30, 28, 25)),
    ((150, 70, 20), (245, 245, 245)),
    ((40, 110, 30), (240, 245, 240)),
    ((40, 190, 240), (20, 20, 30)),
    ((60, 60, 65), (225, 230, 235)),
    ((30, 30, 170), (240, 240, 250)),
]


def draw_signs(photo, rng, edited):
    """The photograph with signs, the same with some of them edited, and the changed boxes."""
    source, result, taken, made = photo.copy(), photo.copy(), [], []
    wanted = (int(rng.choice([1, 2], p=[0.8, 0.2])) if edited else 0) + UNCHANGED
    for number in range(wanted):
        sign = place(photo.shape, taken, rng)
        if sign is None:
            continue
        taken.append(sign["box"])
        before = sign["text"]
        after = changed_text(before, rng) if edited and number < wanted - UNCHANGED else before
        own, other = paint(source, sign, before), paint(result, sign, after)
        if before == after:
            continue
        change = cv2.absdiff(own, other).max(axis=2) > CHANGED
        rows, columns = np.where(change)
        if len(rows) == 0:
            continue
        x, y = sign["box"][:2]
        box = [int(v) for v in (x + columns.min(), y + rows.min(), x + columns.max() + 1, y + rows.max() + 1)]
        made.append({"what": "text", "box": box, "from": before, "to": after})
    return source, result, made


def place(shape, taken, rng):
    """Where a sign is and how it is written, or None if there is no room."""
    for _ in range(60):
        high = float(np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST))))
        font = int(rng.choice(FONTS))
        text = "".join(rng.choice(list(LETTERS if rng.random() < 0.5 else DIGITS)) for _ in range(rng.integers(3, 9)))
        if len(text) > 4 and rng.random() < 0.5:
            text = text[:2] + " " + text[2:]
        scale = high / cv2.getTextSize("H", font, 1, 1)[0][1]
        thick = max(1, round(high / rng.uniform(7, 11)))
        (w, h), _ = cv2.getTextSize(text, font, scale, thick)
        pad = int(high * rng.uniform(0.5, 1.1)) + 3
        width, height = w + 2 * pad, h + 2 * pad
        margin = int(0.07 * max(shape[:2]))  # a cut frame must not cut it off
        if width + 2 * margin >= shape[1] or height + 2 * margin >= shape[0]:
            continue
        x = int(rng.integers(margin, shape[1] - width - margin))
        y = int(rng.integers(margin, shape[0] - height - margin))
        box = [x, y, x + width, y + height]
        if any(near(box, other, 0.05 * max(shape[:2])) for other in taken):
            continue
        ground, ink = COLOURS[rng.integers(len(COLOURS))]
        return {
            "box": box, "text": text, "font": font, "scale": scale, "thick": thick, "at": (pad, pad + h),
            "ground": ground, "ink": ink, "grain": int(rng.integers(1 << 30)), "soft": rng.uniform(0.4, 0.8),
            "light": rng.uniform(0.75, 1.05), "slope": rng.uniform(-0.12, 0.12),
        }
    return None


def paint(image, sign, text):
    """Draws the sign onto the picture and returns what it looks like there."""
    x1, y1, x2, y2 = sign["box"]
    board = np.empty((y2 - y1, x2 - x1, 3), np.uint8)
    board[:] = sign["ground"]
    cv2.rectangle(board, (1, 1), (x2 - x1 - 2, y2 - y1 - 2), sign["ink"], 1, cv2.LINE_AA)
    cv2.putText(board, text, sign["at"], sign["font"], sign["scale"], sign["ink"], sign["thick"], cv2.LINE_AA)
    board = cv2.GaussianBlur(board.astype(np.float32), (0, 0), sign["soft"])
    # The light of the place, and the grain of a photograph: the same for both texts.
    light = sign["light"] + sign["slope"] * np.linspace(-1, 1, x2 - x1, dtype=np.float32)[None, :, None]
    grain = np.random.default_rng(sign["grain"]).normal(0, 2, board.shape).astype(np.float32)
    painted = (board * light + cv2.GaussianBlur(grain, (0, 0), 0.6) + 0.5).clip(0, 255).astype(np.uint8)
    image[y1:y2, x1:x2] = painted
    return painted


def changed_text(text, rng):
    """One to three neighbouring characters are others; what they are stays letters or digits."""
    places = [i for i, character in enumerate(text) if character != " "]
    count = min(int(rng.choice([1, 2, 3], p=[0.5, 0.3, 0.2])), len(places))
    start = int(rng.integers(0, len(places) - count + 1))
    characters = list(text)
    for i in places[start : start + count]:
        pool = DIGITS if characters[i] in DIGITS else LETTERS
        characters[i] = str(rng.choice([c for c in pool if c != characters[i]]))
    return "".join(characters)


def near(a, b, gap):
    return a[0] < b[2] + gap and b[0] < a[2] + gap and a[1] < b[3] + gap and b[1] < a[3] + gap
