"""Measures the exported demo detector on whole drawn scenes, one phrase a prompt, as a user would
ask: how often the best box hits (recall@1), and how often an absent phrase is found all the same.

    python evaluate.py --model ../models/demo-detector/ --scenes scenes/test
"""

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image
from tokenizers import Tokenizer

import detector
from detector import corners, iou, pixels

UNKNOWN = ["dog", "traffic light", "person", "elephant", "coffee table", "window", "xylophone", "cloud"]


class Detector:
    def __init__(self, folder, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(folder / "model.onnx", options)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def prepare(self, picture):
        return pixels([picture.resize(detector.resized(*picture.size), Image.BILINEAR)]).numpy()

    def ask(self, image, phrase):
        """Scores and boxes (as corners, 0 to 1), best first."""
        ids = np.array([self.tokenizer.encode(phrase.lower() + ".").ids])
        logits, boxes = self.session.run(
            ["logits", "pred_boxes"],
            {
                "pixel_values": image,
                "pixel_mask": np.ones((1, *image.shape[2:]), np.int64),
                "input_ids": ids,
                "token_type_ids": np.zeros_like(ids),
                "attention_mask": np.ones_like(ids),
            },
        )
        score = (1 / (1 + np.exp(-logits[0]))).max(1)
        order = np.argsort(-score)
        return score[order], corners(boxes[0])[order]


def kind(words, phrase):
    adjective, noun, _ = words.parts(phrase)
    materials = "wooden metal marble knitted glass brick striped dotted checkered".split()
    return "sign" if noun == "sign" else "material" if adjective in materials else "colour"


def band(box, size):
    """The side of an object when the network sees it."""
    factor = detector.resized(*size)[0] / size[0]
    side = np.sqrt((box[2] - box[0]) * (box[3] - box[1])) * factor
    return next((f"below {limit} px" for limit in (24, 36, 56) if side < limit), "56 px and more")


def absent(words, present, dice):
    """Phrases that fit nothing here, by how near they come."""
    parts = [words.parts(phrase) for phrase in sorted(present)]
    adjective, noun, _ = dice.choice([p for p in parts if p[0]])
    yield "shares the adjective", [f"{adjective} {n}" for n in words.nouns]
    yield "shares the noun", [f"{a} {noun}" for a in words.adjectives]
    yield "another word on a sign", words.signs
    nouns = {p[1] for p in parts}
    adjectives = {p[0] for p in parts}
    strange = [p for p in words.phrases if not {*p.split()} & (nouns | adjectives | {"sign"})]
    yield "shares nothing", strange
    yield "unknown words", [dice.choice(UNKNOWN)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--scenes", type=Path, required=True)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    words = detector.vocabulary(args.scenes)
    model = Detector(args.model, args.threads)
    dice = random.Random(1)
    hits, scores, alarms, spent, others = {}, [], {}, [], []
    for scene in detector.scenes([args.scenes], limit=args.limit):
        image = model.prepare(scene.picture)
        size = scene.picture.size
        for phrase in sorted(set(scene.phrases)):
            begun = time.time()
            score, boxes = model.ask(image, phrase)
            spent.append(time.time() - begun)
            real = [b for b, p in zip(scene.boxes, scene.phrases) if p == phrase]
            boxes = boxes * np.array(size * 2)
            near = [iou(boxes[0], b) for b in real]
            hit = max(near) >= 0.5
            groups = ["all", kind(words, phrase), band(real[int(np.argmax(near))], size)]
            for group in groups:
                hits.setdefault(group, []).append(hit)
            scores.append((score[0], hit))
            wrong = [s for s, b in zip(score, boxes) if max(iou(b, r) for r in real) < 0.3]
            others.append(max(wrong, default=0))
        for how, phrases in absent(words, set(scene.phrases), dice):
            phrases = [p for p in phrases if p not in scene.phrases]
            if phrases:
                score, _ = model.ask(image, dice.choice(phrases))
                alarms.setdefault(how, []).append(score[0])
    told = {
        "recall@1 at IoU 0.5": {k: (round(float(np.mean(v)), 3), len(v)) for k, v in hits.items()},
        "by threshold": {},
        "seconds a picture": round(float(np.median(spent)), 3),
    }
    every = np.array([s for some in alarms.values() for s in some])
    for threshold in (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6):
        told["by threshold"][threshold] = {
            "found and right": round(float(np.mean([s >= threshold and h for s, h in scores])), 3),
            "a wrong box too": round(float(np.mean(np.array(others) >= threshold)), 3),
            "false alarm, absent phrases": round(float(np.mean(every >= threshold)), 3),
            **{how: round(float(np.mean(np.array(s) >= threshold)), 3) for how, s in alarms.items()},
        }
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
