"""Photographs for the benchmark: collected from packages at run time, never committed.

Two come from the scikit-image wheel (the others it and scikit-learn ship are too small), the
rest from Debian's wallpaper packages. Drawn wallpapers are left out by naming the photographs.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np

LONGEST = 2800  # enough to crop 0.9-2 K pictures from, and quick to load again
LONGEST_LARGE = 4096
USUAL, LARGE = (900, 2000), (2000, 4096)  # the long side of a picture
TEXTURED_SHARE = 0.25  # of 16x16 blocks; below it the picture is nearly a plain surface

DEBIAN = {
    "lomiri-wallpapers-16.04": "Bridge Dragonfly Picture_0B Picture_1A Wine aitzgorri friends"
    " greentock life picosdeeuropa seeding sunset",
    "lomiri-wallpapers-20.04": "Kleiber",
    "lxqt-themes": "Butterfly-Kenneth Valendas after-the-rain appleflower beam.png butterfly.png"
    " cloud.png drop.png flowers fog this-is-not-windows",
    "mate-backgrounds": "Aqua Blinds Dune FreshFlower Garden GreenMeadow LadyBird RainDrops"
    " Storm TwoWings Wood.jpg YellowFlower",
    "plasma-workspace-wallpapers": "BytheWater ColdRipple ColorfulCups EveningGlow FallenLeaf"
    " Grey Kite OneStandsOut Path summer_1am",
}


def longest_of(which):
    """The long side up to which photographs are kept for a set."""
    return LONGEST_LARGE if which.startswith("text") else LONGEST


def collect(cache, longest=LONGEST):
    """Paths of all photographs, shrunk and stored under `cache`; the order is always the same."""
    large = longest == LONGEST_LARGE
    store, least = Path(cache) / ("photographs-large" if large else "photographs"), (LARGE if large else USUAL)[0]
    if not (store / "complete").exists():
        store.mkdir(parents=True, exist_ok=True)
        for source, name in [*from_wheels(), *from_debian(Path(cache) / "debian")]:
            image = cv2.imread(str(source), cv2.IMREAD_COLOR)
            if image is not None and max(image.shape[:2]) >= least:
                save(store / f"{name}.png", shrink(image, longest))
        (store / "complete").touch()
    return sorted(store.glob("*.png"))


def from_wheels():
    found = []
    for package, folder in (("skimage", "data"), ("sklearn", "datasets/images")):
        # Located but not imported: only their pictures are needed, not what they depend on.
        home = Path(importlib.util.find_spec(package).origin).parent
        found += [(path, path.stem) for path in sorted((home / folder).glob("*.jpg"))]
    return found


def from_debian(folder):
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        print("photos: no apt-get here, so Debian's wallpaper packages are skipped", file=sys.stderr)
        return []
    found = []
    for package, names in DEBIAN.items():
        files = unpack(package, folder / package)
        for name in names.split():
            of_name = [path for path in files if path.stat().st_size > 60_000 and name in str(path)]
            if of_name:  # the same picture may come in many sizes
                found.append((max(of_name, key=lambda path: path.stat().st_size), name.split(".")[0]))
    return found


def unpack(package, folder):
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob("*.deb")) and not download(package, folder):
        print(f"photos: could not download {package}, skipped", file=sys.stderr)
        return []
    subprocess.run(["dpkg-deb", "-x", str(next(folder.glob("*.deb"))), str(folder)], check=True)
    pictures = {".jpg", ".jpeg", ".png"}
    # Links of one picture under many names would be loaded again and again.
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in pictures and not p.is_symlink())


def download(package, folder):
    def apt(*arguments):
        return subprocess.run(
            ["apt-get", "-qq", *arguments], cwd=folder, capture_output=True, env={**os.environ, "LC_ALL": "C"}
        ).returncode == 0

    if apt("download", package):
        return True
    # Without package lists on the machine, fetch our own: this needs no rights.
    own = folder.parent / "apt"
    (own / "lists/partial").mkdir(parents=True, exist_ok=True)
    (own / "cache/archives/partial").mkdir(parents=True, exist_ok=True)
    options = ["-o", f"Dir::State::lists={own}/lists", "-o", f"Dir::Cache={own}/cache"]
    return apt(*options, "update") and apt(*options, "download", package)


def take(path, rng, sides=USUAL):
    """A picture with such a long side: a random part of the photograph, shrunk but never enlarged."""
    photo = cv2.imread(str(path), cv2.IMREAD_COLOR)
    height, width = photo.shape[:2]
    part = photo
    for _ in range(20):
        w, h = (int(side * rng.uniform(0.55, 1)) for side in (width, height))
        if max(w, h) < sides[0] or not 0.5 <= w / h <= 2:
            continue
        x, y = rng.integers(0, width - w + 1), rng.integers(0, height - h + 1)
        part = photo[y : y + h, x : x + w]
        if textured_share(part) >= TEXTURED_SHARE:
            break
    return shrink(part, rng.uniform(*sides))


def textured_share(image):
    luma = cv2.cvtColor(shrink(image, 1024), cv2.COLOR_BGR2GRAY).astype(np.float32)
    mean, square = cv2.blur(luma, (16, 16)), cv2.blur(luma * luma, (16, 16))
    return float((square - mean * mean > 3**2).mean())


def shrink(image, long_side):
    factor = long_side / max(image.shape[:2])
    if factor >= 1:
        return image.copy()
    size = tuple(max(1, round(side * factor)) for side in image.shape[1::-1])
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA)


def save(path, image):
    cv2.imwrite(str(path), image, [cv2.IMWRITE_PNG_COMPRESSION, 1])
