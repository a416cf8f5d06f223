"""Writes ciede2000.csv: pairs of colours with the CIELAB values and CIEDE2000 that scikit-image gives.

    pip install scikit-image==0.26.0 && python make.py
"""

from pathlib import Path

import numpy as np
from skimage.color import deltaE_ciede2000, rgb2lab

rng = np.random.default_rng(7)
anything = rng.integers(0, 256, (160, 2, 3))
near = np.repeat(rng.integers(0, 256, (100, 1, 3)), 2, axis=1) + rng.integers(-6, 7, (100, 2, 3))
greys = np.repeat(rng.integers(0, 256, (20, 2, 1)), 3, axis=2)
primaries = np.array([[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255], [1, 1, 1], [128, 128, 128]])
pairs = np.array([[a, b] for a in primaries for b in primaries])
colours = np.concatenate([anything, near, greys, pairs]).clip(0, 255).astype(np.uint8)

lab = rgb2lab(colours)
distance = deltaE_ciede2000(lab[:, 0], lab[:, 1])
lines = ["r1,g1,b1,r2,g2,b2,l1,a1,b1,l2,a2,b2,ciede2000"]
for rgb, values, far in zip(colours.reshape(-1, 6), lab.reshape(-1, 6), distance):
    lines.append(",".join([*map(str, rgb), *(f"{value:.5f}" for value in [*values, far])]))
Path(__file__).with_name("ciede2000.csv").write_text("\n".join(lines) + "\n")
