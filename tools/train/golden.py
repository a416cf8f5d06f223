"""Writes golden files for a port's tests: what transformers and ONNX Runtime make of four small
pictures with the demo detector.

    python golden.py --weights run/model.pt --model ../models/demo-detector/ --scenes scenes/test \
        --out ../tests/golden/grounding/

`index.json` lists the cases; arrays lie beside it as raw little-endian 32-bit floats, row by row:

- `picture`, `width`, `height`, `prompt`, `input_ids`.
- `pixels`: the preprocessed tensor, `full_shape` [3, H, W]; of it every `step`-th row and column of
  each channel, starting with the first, is in `file` with `shape`; `mean` is over the whole tensor.
  By transformers' GroundingDinoImageProcessorPil: Pillow's bilinear filter (it smooths when it
  shrinks) on 8-bit pixels, then rescaled and normalised.
- `torch`, `onnx`: `logits` [queries, tokens] (only the prompt's columns; all others are minus
  infinity) and `boxes` [queries, 4] as centre and size, 0 to 1.
- `found`: what post_process_grounded_object_detection gives for the logits of PyTorch with
  `threshold` and `text_threshold`: boxes as corners in the picture's own pixels.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from transformers import BertTokenizerFast, GroundingDinoProcessor
from transformers.models.grounding_dino.image_processing_pil_grounding_dino import (
    GroundingDinoImageProcessorPil,
)

import detector
import export

SIZES = [(130, 97), (320, 200), (256, 256), (190, 333)]
STEP = 8
BOX, TEXT = 0.3, 0.25


def window(scene, size, sign):
    """A part of a scene that holds an object whole, and the object's phrase."""
    for phrase, box in zip(scene.phrases, scene.boxes):
        room = [size[i] - (box[i + 2] - box[i]) for i in (0, 1)]
        if min(room) < 8 or phrase.startswith("sign") != sign:
            continue
        corner = [
            int(min(max(box[i] - room[i] / 2, 0), scene.picture.size[i] - size[i])) for i in (0, 1)
        ]
        area = (*corner, corner[0] + size[0], corner[1] + size[1])
        return scene.picture.crop(area), phrase
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--scenes", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    model, _ = export.load(args.weights, args.scenes)
    settings = json.loads((args.model / "preprocessor_config.json").read_text())
    del settings["image_processor_type"]
    processor = GroundingDinoProcessor(
        GroundingDinoImageProcessorPil(**settings),
        BertTokenizerFast(tokenizer_file=str(args.model / "tokenizer.json")),
    )
    session = onnxruntime.InferenceSession(args.model / "model.onnx")
    drawn, cases = detector.scenes([args.scenes], limit=24), []
    for number, size in enumerate(SIZES):
        seen = (window(scene, size, sign=number == 2) for scene in drawn[number * 4 :])
        picture, phrase = next(found for found in seen if found)
        prompt = phrase.lower() + "."
        prompt += ["", " blue square.", "", " a dog. red circle."][number]
        cases.append(case(args.out, f"{number + 1}", picture, prompt, model, processor, session))
    text = json.dumps({"threshold": BOX, "text_threshold": TEXT, "cases": cases}, indent=1)
    (args.out / "index.json").write_text(text + "\n")


@torch.no_grad()
def case(out, name, picture, prompt, model, processor, session):
    picture.save(out / f"{name}.png", optimize=True)
    given = processor(images=picture, text=prompt, return_tensors="pt")
    ids = given["input_ids"]
    length = ids.shape[1]
    said = model(**given)
    there = session.run(None, {name: given[name].numpy() for name in export.INPUTS})
    height, width = picture.height, picture.width
    found = processor.post_process_grounded_object_detection(
        said, ids, threshold=BOX, text_threshold=TEXT, target_sizes=[(height, width)]
    )[0]
    whole = given["pixel_values"][0].numpy()

    def write(what, array):
        file = f"{name}-{what}.bin"
        array = np.ascontiguousarray(array, dtype="<f4")
        (out / file).write_bytes(array.tobytes())
        return {"file": file, "shape": list(array.shape)}

    pixels = write("pixels", whole[:, ::STEP, ::STEP])
    pixels |= {"step": STEP, "full_shape": list(whole.shape), "mean": float(whole.mean(dtype=np.float64))}
    return {
        "picture": f"{name}.png",
        "width": width,
        "height": height,
        "prompt": prompt,
        "input_ids": ids[0].tolist(),
        "pixels": pixels,
        "torch": {
            "logits": write("torch-logits", said.logits[0, :, :length].numpy()),
            "boxes": write("torch-boxes", said.pred_boxes[0].numpy()),
        },
        "onnx": {
            "logits": write("onnx-logits", there[0][0, :, :length]),
            "boxes": write("onnx-boxes", there[1][0]),
        },
        "found": {
            "boxes": [[round(v, 3) for v in box] for box in found["boxes"].tolist()],
            "scores": [round(v, 5) for v in found["scores"].tolist()],
            "phrases": found["text_labels"] if len(found["boxes"]) else [],
        },
    }


if __name__ == "__main__":
    main()
