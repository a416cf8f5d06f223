"""Draws scenes and asks the tool for things that are in them and for things that are not.

    python scene.py DEEPLOOK FOLDER
"""

import json
import shutil
import subprocess
import sys

deeplook, folder = sys.argv[1:]
SEED = "4242"
# By scene: what is in it, and what is not, though its colour and its shape may be.
PAIRS = {
    "0001": ("blue star", "red circle"),
    "0003": ("red triangle", "blue square"),
    "0005": ("purple square", "red circle"),
    "0007": ("blue square", "red circle"),
}
shutil.rmtree(folder, ignore_errors=True)
subprocess.run([deeplook, "dataset", "make", "--out", folder, "--cases", "7", "--seed", SEED], check=True, stdout=subprocess.DEVNULL)


def look(picture, name):
    args = json.dumps({"detect_object_name": name})
    command = [deeplook, "tool", "detect_object", f"{folder}/{picture}", "--args", args, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    area = lambda box: (box[2] - box[0]) * (box[3] - box[1])
    return width * height / (area(a) + area(b) - width * height)


found, cases = 0, [json.loads(line) for line in open(f"{folder}/cases.jsonl")]
for case in cases:
    boxes = look(case["source"], case["target"])["data"]["boxes"]
    hit = bool(boxes) and any(overlap(boxes[0]["bbox"], box) >= 0.5 for box in case["boxes"])
    found += hit
    print(f"{case['target']}: {'found' if hit else 'missed'}")
print(f"recall@1 {found}/{len(cases)}")
assert found >= 5, "the demo detector finds too little"
for case in cases:
    there, absent = PAIRS.get(case["id"], (None, "a photograph of a dog"))
    nothing = look(case["source"], absent)
    assert not nothing["data"]["boxes"] and nothing["text"].startswith("Nothing in"), nothing["text"]
    if there:
        assert look(case["source"], there)["data"]["boxes"], f"no {there} in {case['source']}"
    print(f"{case['source']}: {there or 'nothing'} is there, {absent} is not")
