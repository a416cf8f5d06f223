"""OpenCV's plain pipeline behind the tool's command line, to compare figures: --binary baseline.py"""

import json
import sys

import cv2
import numpy as np

_, _, _, first, second, *_ = sys.argv
a, b = (cv2.imread(path) for path in (first, second))
b = cv2.resize(b, a.shape[1::-1], interpolation=cv2.INTER_AREA)
difference = cv2.absdiff(a, b).max(axis=2)  # in grey, most recolouring would be lost
changed = cv2.threshold(difference, 30, 255, cv2.THRESH_BINARY)[1]
changed = cv2.morphologyEx(changed, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
changed = cv2.dilate(changed, np.ones((15, 15), np.uint8))
_, _, stats, _ = cv2.connectedComponentsWithStats(changed)
largest = sorted(stats[1:].tolist(), key=lambda row: -row[4])[:8]
regions = [{"bbox": [x, y, x + w, y + h]} for x, y, w, h, _ in largest]
print(json.dumps({"text": "", "data": {"regions": regions}, "images": []}))
