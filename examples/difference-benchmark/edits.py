"""Small edits a person can see, with the box of the pixels they really changed."""

import cv2
import numpy as np

SMALLEST, LARGEST = 0.0005, 0.013  # the changed box, as a share of the picture
CHANGED = 10  # levels in any channel; what feathering leaves below it nobody sees
VISIBLE_MEAN = 22  # mean change over the changed pixels
VISIBLE_SHARE = 0.5  # of the touched pixels really changed
VISIBLE_TINT = 10  # change of the mean colour: a patch of leaves on leaves is no visible edit
KINDS = ("recolour", "removal", "paste", "mark")


def edit(image, other, kind, taken, rng, large=False):
    """The edited image and the changed box, or None where no visible edit was found.

    `other` is another photograph to paste from, `taken` are boxes to stay away from.
    """
    height, width = image.shape[:2]
    for _ in range(80):
        if large:
            w, h = int(width * rng.uniform(0.2, 0.45)), int(height * rng.uniform(0.2, 0.45))
        else:
            area = width * height * np.exp(rng.uniform(np.log(SMALLEST * 1.1), np.log(LARGEST)))
            aspect = np.exp(rng.uniform(-0.5, 0.5))
            w, h = int(np.sqrt(area * aspect)), int(np.sqrt(area / aspect))
        if kind == "mark":
            w = h = min(w, h, int(0.06 * max(width, height)))
        margin = int(0.015 * max(width, height))
        if w + 2 * margin >= width or h + 2 * margin >= height:
            continue
        x = int(rng.integers(margin, width - w - margin))
        y = int(rng.integers(margin, height - h - margin))
        if any(near((x, y, x + w, y + h), box, 0.04 * max(width, height)) for box in taken):
            continue
        pad = 12  # feathering and inpainting reach a little beyond the box
        window = np.s_[max(0, y - pad) : y + h + pad, max(0, x - pad) : x + w + pad]
        mask = np.zeros(image.shape[:2], np.float32)
        mask[y : y + h, x : x + w] = blob(w, h, rng)
        before = image[window].copy()
        after, touched = PAINT[kind](before, mask[window], other, (w, h), rng)
        changed = visible_change(before, after, touched, kind)
        if changed is None:
            continue
        rows, columns = np.where(changed)
        left, top = window[1].start, window[0].start
        box = [int(v) for v in (left + columns.min(), top + rows.min(), left + columns.max() + 1, top + rows.max() + 1)]
        share = (box[2] - box[0]) * (box[3] - box[1]) / (width * height)
        if not large and not SMALLEST <= share <= LARGEST:
            continue
        result = image.copy()
        result[window] = after
        return result, box
    return None


def visible_change(before, after, touched, kind):
    change = cv2.absdiff(before, after).max(axis=2)
    # Single stray pixels must not stretch the box.
    changed = cv2.medianBlur((change > CHANGED).astype(np.uint8), 3) > 0
    touched = touched > 0.5
    if changed.sum() < VISIBLE_SHARE * touched.sum() or not changed.any():
        return None
    if change[changed].mean() < VISIBLE_MEAN:
        return None
    tint = np.abs(before[touched].mean(axis=0) - after[touched].mean(axis=0)).max()
    if kind != "removal" and tint < VISIBLE_TINT:
        return None
    return changed


def near(a, b, gap):
    return a[0] < b[2] + gap and b[0] < a[2] + gap and a[1] < b[3] + gap and b[1] < a[3] + gap


def blob(w, h, rng):
    """A soft-edged rounded shape that fills its w x h box, or a plain rectangle."""
    if rng.random() < 0.2:
        return np.ones((h, w), np.float32)
    angle = np.linspace(0, 2 * np.pi, 90, endpoint=False)
    radius = 1 + sum(rng.uniform(-0.12, 0.12) * np.cos(k * angle + rng.uniform(0, 6.3)) for k in (2, 3, 4, 5))
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    x, y = (x - x.min()) / np.ptp(x) * (w - 1), (y - y.min()) / np.ptp(y) * (h - 1)
    mask = np.zeros((h, w), np.float32)
    cv2.fillPoly(mask, [np.stack([x, y], 1).round().astype(np.int32)], 1.0)
    return mask


def blend(before, painted, mask):
    soft = cv2.GaussianBlur(mask, (0, 0), 1.0)[..., None]
    return (before * (1 - soft) + painted * soft + 0.5).clip(0, 255).astype(np.uint8)


def recolour(before, mask, other, size, rng):
    lab = cv2.cvtColor(before.astype(np.float32) / 255, cv2.COLOR_BGR2LAB)
    hue, chroma = rng.uniform(0, 2 * np.pi), rng.uniform(28, 65)
    lab[..., 1:] = 0.35 * lab[..., 1:] + chroma * np.array([np.cos(hue), np.sin(hue)], np.float32)
    lab[..., 0] = (lab[..., 0] + rng.uniform(-6, 6)).clip(12, 92)
    painted = cv2.cvtColor(lab.astype(np.float32), cv2.COLOR_LAB2BGR).clip(0, 1) * 255
    return blend(before, painted, mask), mask


def removal(before, mask, other, size, rng):
    hole = (mask > 0).astype(np.uint8)
    return cv2.inpaint(before, hole, 5, cv2.INPAINT_TELEA), mask


def paste(before, mask, other, size, rng):
    height, width = before.shape[:2]
    scale = rng.uniform(1, 2.5)  # an object is a whole thing made small, not a bit of texture
    w, h = (min(int(side * scale), limit) for side, limit in zip((width, height), other.shape[1::-1]))
    x, y = int(rng.integers(0, other.shape[1] - w + 1)), int(rng.integers(0, other.shape[0] - h + 1))
    painted = cv2.resize(other[y : y + h, x : x + w], (width, height), interpolation=cv2.INTER_AREA)
    return blend(before, painted, mask), mask


def mark(before, mask, other, size, rng):
    rows, columns = np.where(mask > 0)
    x1, y1, x2, y2 = columns.min(), rows.min(), columns.max(), rows.max()
    side = min(x2 - x1, y2 - y1)
    thick = int(max(3, side / 6))
    x1, y1, x2, y2 = (int(v) for v in (x1 + thick // 2, y1 + thick // 2, x2 - thick // 2, y2 - thick // 2))
    drawn = np.zeros(before.shape[:2], np.uint8)
    shape = rng.choice(["cross", "ring", "disc", "tick", "letter"])
    if shape == "cross":
        cv2.line(drawn, (x1, y1), (x2, y2), 255, thick, cv2.LINE_AA)
        cv2.line(drawn, (x1, y2), (x2, y1), 255, thick, cv2.LINE_AA)
    elif shape == "tick":
        points = np.array([[x1, (y1 + y2) // 2], [(2 * x1 + x2) // 3, y2], [x2, y1]], np.int32)
        cv2.polylines(drawn, [points], False, 255, thick, cv2.LINE_AA)
    elif shape == "letter":
        cv2.putText(drawn, str(rng.choice(list("ABEHKRX"))), (x1, y2), cv2.FONT_HERSHEY_SIMPLEX, side / 24, 255, thick, cv2.LINE_AA)
    else:
        fill = -1 if shape == "disc" else thick
        cv2.circle(drawn, ((x1 + x2) // 2, (y1 + y2) // 2), max(2, int(side) // 2 - thick // 2), 255, fill, cv2.LINE_AA)
    ground = before[drawn > 127].mean(axis=0) if (drawn > 127).any() else np.zeros(3)
    inks = np.array([[30, 30, 220], [20, 20, 20], [245, 245, 245], [0, 220, 250], [220, 60, 20]])
    inks = inks[np.abs(inks - ground).max(axis=1) > 90]
    ink = inks[rng.integers(len(inks))]
    alpha = drawn[..., None] / np.float32(255)
    after = (before * (1 - alpha) + ink * alpha + 0.5).astype(np.uint8)
    return after, drawn / np.float32(255)


PAINT = {"recolour": recolour, "removal": removal, "paste": paste, "mark": mark}
