"""What an image editor does to the whole picture besides the edit it was asked for.

Each nuisance takes a picture and a generator; it returns the changed picture, the JPEG quality
to store it with (None: lossless) and which part of the source (x1, y1, x2, y2) is still in it.
"""

import cv2
import numpy as np


def whole(image):
    return [0, 0, image.shape[1], image.shape[0]]


def none(image, rng):
    return image, None, whole(image)


def jpeg90(image, rng):
    return image, 90, whole(image)


def tone_jpeg78(image, rng):
    gain = rng.uniform(0.92, 1.08)
    bias = rng.uniform(-8, 8)
    gamma = rng.uniform(0.9, 1.1)
    return to_bytes(255 * (image / np.float32(255)) ** gamma * gain + bias), 78, whole(image)


def returned1024(image, rng):
    factor = 1024 / max(image.shape[:2])
    size = tuple(max(16, 16 * round(side * factor / 16)) for side in image.shape[1::-1])
    return resize(image, size), None, whole(image)


def regenerated(image, rng):
    height, width = image.shape[:2]
    factor = rng.uniform(0.55, 0.8)
    small = resize(image, (round(width * factor), round(height * factor)))
    back = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    back = cv2.GaussianBlur(back, (0, 0), rng.uniform(0.5, 0.9)).astype(np.float32)
    back = shift(back, *(rng.uniform(1, 2, 2) * rng.choice([-1, 1], 2)))
    back *= rng.uniform(0.96, 1.04, 3).astype(np.float32)
    back += rng.normal(0, 3, back.shape).astype(np.float32)
    return to_bytes(back), 88, whole(image)


def redrawn(image, rng):
    warped = warp(image, rng, rng.uniform(2, 4), 1 / 6)
    softer = cv2.GaussianBlur(warped, (0, 0), rng.uniform(0.7, 1.2)).astype(np.float32)
    x = softer / 255
    x = x ** rng.uniform(0.88, 1.14)
    x += rng.uniform(-0.12, 0.12) * x * (1 - x) * (2 * x - 1) * 4  # more or less contrast
    size = (1536, 1024) if image.shape[1] >= image.shape[0] else (1024, 1536)
    return resize(to_bytes(255 * x), size), None, whole(image)


def reframed(image, rng):
    part, kept = cut(image, rng, 0.01, 0.045)
    return to_long_side(part, 1024), None, kept


def redrawn_cropped(image, rng):
    drawn, _, _ = redrawn(image, rng)
    part, (x1, y1, x2, y2) = cut(drawn, rng, 0.01, 0.045)
    fx, fy = image.shape[1] / drawn.shape[1], image.shape[0] / drawn.shape[0]
    return part, None, [x1 * fx, y1 * fy, x2 * fx, y2 * fy]


def rotated(image, rng):
    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), 0.7 * rng.choice([-1, 1]), 1)
    turned = cv2.warpAffine(image, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
    lost = 0.0123 * max(width, height) / 2  # what the corners turned out of the frame
    kept = [lost, lost, width - lost, height - lost]
    if rng.random() < 0.5:  # half of them without the invented corners
        edge = int(lost) + 1
        turned = turned[edge : height - edge, edge : width - edge]
        kept = [2 * lost, 2 * lost, width - 2 * lost, height - 2 * lost]
    return turned, 92, kept


def cut_more(image, rng):
    part, kept = cut(image, rng, 0.05, 0.10)
    return to_long_side(part, 1024), None, kept


def relit(image, rng):
    field = smooth_field(image.shape, rng, 1 / 5)
    return to_bytes(image * (1 + 0.15 * field[..., None])), 92, whole(image)


def warped3(image, rng):
    return warp(image, rng, 3, 1 / 8), 92, whole(image)


def jpeg88(image, rng):
    return image, 88, whole(image)


def tone_jpeg82(image, rng):
    return tone_jpeg78(image, rng)[0], 82, whole(image)


def returned1536(image, rng):
    return to_long_side(image, 1536), None, whole(image)


def softer1248(image, rng):
    small = cv2.GaussianBlur(to_long_side(image, 1248), (0, 0), rng.uniform(0.4, 0.7)).astype(np.float32)
    return to_bytes(small + rng.normal(0, 2.5, small.shape)), None, whole(image)


def moved(image, rng):
    height, width = image.shape[:2]
    factor = 1 + 0.01 * rng.choice([-1, 1])
    dx, dy = rng.uniform(0.004, 0.01, 2) * rng.choice([-1, 1], 2) * max(width, height)
    matrix = np.float32([[factor, 0, (1 - factor) * width / 2 + dx], [0, factor, (1 - factor) * height / 2 + dy]])
    result = cv2.warpAffine(image, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
    return result, 92, whole(image)


def warped_noisy(image, rng):
    result = warp(image, rng, 1.5, 1 / 8).astype(np.float32)
    return to_bytes(result + rng.normal(0, 2.5, result.shape)), None, whole(image)


def cut_some(image, rng):
    part, kept = cut(image, rng, 0.02, 0.06)
    return part, 92, kept


def warped4(image, rng):
    return warp(image, rng, 4, 1 / 8), 92, whole(image)


def softly_regenerated(image, rng):
    height, width = image.shape[:2]
    small = resize(image, (round(width * 0.75), round(height * 0.75)))
    back = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    back = cv2.GaussianBlur(back, (0, 0), 0.5).astype(np.float32)
    return to_bytes(back + rng.normal(0, 3, back.shape)), 90, whole(image)


def sharpened(image, rng):
    soft = cv2.GaussianBlur(image, (0, 0), 1.2)
    return cv2.addWeighted(image, 1.6, soft, -0.6, 0), 92, whole(image)


def shifted(image, rng):
    return shift(image, *(0.4 * rng.choice([-1, 1], 2))), 92, whole(image)


def redrawn_detail(image, rng):
    """Every detail a little elsewhere: moves of 1 px on a grid of 24."""
    height, width = image.shape[:2]
    grid = (height // 24 + 2, width // 24 + 2)
    moves = [cv2.resize(rng.uniform(-1, 1, grid).astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC) for _ in "xy"]
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    result = cv2.remap(image, x + moves[0], y + moves[1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
    return result, 92, whole(image)


def cut(image, rng, least, most):
    height, width = image.shape[:2]
    x1, x2 = int(width * rng.uniform(least, most)), width - int(width * rng.uniform(least, most))
    y1, y2 = int(height * rng.uniform(least, most)), height - int(height * rng.uniform(least, most))
    return image[y1:y2, x1:x2], [x1, y1, x2, y2]


def warp(image, rng, pixels, scale):
    """Moves every point smoothly, by at most `pixels`."""
    height, width = image.shape[:2]
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    dx, dy = smooth_field(image.shape, rng, scale), smooth_field(image.shape, rng, scale)
    longest = np.sqrt(dx * dx + dy * dy).max()
    dx, dy = dx * (pixels / longest), dy * (pixels / longest)
    return cv2.remap(image, x + dx, y + dy, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)


def smooth_field(shape, rng, scale):
    """Random hills of about `scale` of the long side, from -1 to 1."""
    height, width = (max(8, round(64 * side / max(shape[:2]))) for side in shape[:2])
    sigma = 64 * scale / 2
    pad = int(3 * sigma)
    noise = rng.normal(0, 1, (height + 2 * pad, width + 2 * pad)).astype(np.float32)
    field = cv2.GaussianBlur(noise, (0, 0), sigma)[pad:-pad, pad:-pad]
    field = cv2.resize(field, shape[1::-1], interpolation=cv2.INTER_CUBIC)
    field -= field.mean()
    return field / np.abs(field).max()


def shift(image, dx, dy):
    matrix = np.float32([[1, 0, dx], [0, 1, dy]])
    return cv2.warpAffine(image, matrix, image.shape[1::-1], flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)


def resize(image, size):
    shrinks = size[0] < image.shape[1]
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)


def to_long_side(image, long_side):
    factor = long_side / max(image.shape[:2])
    return resize(image, tuple(round(side * factor) for side in image.shape[1::-1]))


def to_bytes(image):
    return (image + 0.5).clip(0, 255).astype(np.uint8)


BENCHMARK = {
    "none": none,
    "jpeg90": jpeg90,
    "tone-jpeg78": tone_jpeg78,
    "returned1024": returned1024,
    "regenerated": regenerated,
    "redrawn": redrawn,
    "reframed": reframed,
}
STRESS = {
    "redrawn-cropped": redrawn_cropped,
    "rotated": rotated,
    "cut-more": cut_more,
    "relit": relit,
    "warped3": warped3,
    "large-edit": regenerated,
}
TEXT = {
    "text-none": none,
    "text-jpeg88": jpeg88,
    "text-tone-jpeg82": tone_jpeg82,
    "text-returned1536": returned1536,
    "text-softer1248": softer1248,
    "text-moved": moved,
    "text-warped": warped_noisy,
}
HARD = {
    "text-relit": relit,
    "text-rotated": rotated,
    "text-cut": cut_some,
    "text-warped4": warped4,
    "text-regenerated": softly_regenerated,
    "text-sharpened": sharpened,
    "text-shifted": shifted,
    "text-redrawn-detail": redrawn_detail,
}
ALL = {**BENCHMARK, **STRESS, **TEXT, **HARD}
