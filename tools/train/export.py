"""Writes the trained demo detector as ONNX, with its tokenizer and preprocessor settings, and
checks that ONNX Runtime agrees with PyTorch at sizes other than the traced one.

    python export.py --weights run/model.pt --words scenes/c --out ../models/demo-detector/
"""

import argparse
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

import detector
from transformers.models.grounding_dino import modeling_grounding_dino as dino

INPUTS = ["pixel_values", "pixel_mask", "input_ids", "token_type_ids", "attention_mask"]


class Public(nn.Module):
    """The network behind the names that public exports use."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values, pixel_mask, input_ids, token_type_ids, attention_mask):
        out = self.model(
            pixel_values=pixel_values,
            pixel_mask=pixel_mask,
            input_ids=input_ids,
            token_type_ids=token_type_ids,
            attention_mask=attention_mask,
        )
        return out.logits, out.pred_boxes


def make_traceable():
    """A trace turns sizes into constants in three places of transformers' code: the block mask of
    the text, the tensor of the levels' shapes, and grids made with linspace."""
    as_tensor, linspace = torch.as_tensor, torch.linspace

    def shapes_as_tensor(data, *args, **options):
        if isinstance(data, list) and data and isinstance(data[0], tuple):
            rows = [torch.stack([scalar(side) for side in row]) for row in data]
            return torch.stack(rows)
        return as_tensor(data, *args, **options)

    def step_one(start, end, steps, **options):
        return torch.arange(steps, **options) + start

    torch.as_tensor, torch.linspace = shapes_as_tensor, step_one
    dino.generate_masks_with_special_tokens_and_transfer_map = text_blocks


def scalar(side):
    return side if isinstance(side, torch.Tensor) else torch.tensor(side, dtype=torch.long)


def text_blocks(ids):
    """The same as transformers' function, in comparisons only: which tokens see each other (those
    up to the same delimiter), and each token's position in its phrase."""
    length = ids.shape[1]
    ends = (ids == 101) | (ids == 102) | (ids == 1012) | (ids == 1029)
    at = torch.arange(length)
    later = torch.where(ends[:, None, :] & (at[None, :] >= at[:, None])[None], at, length)
    following = later.min(2)[0]
    earlier = torch.where(ends[:, None, :] & (at[None, :] <= at[:, None])[None], at, -1)
    before = earlier.max(2)[0]
    valid = (following != 0) & (following != length - 1) & (following != length)
    sees = (following[:, :, None] == following[:, None, :]) & valid[:, None, :]
    sees = sees | (at[:, None] == at[None, :])[None]
    position = torch.where(valid, at - before - 1, torch.zeros_like(before)).clamp(min=0)
    return sees, position


def load(weights, words):
    tokenizer = detector.tokenizer(detector.vocabulary(words))
    model = detector.network(tokenizer.get_vocab_size())
    detector.load_weights(model, weights)
    return model.eval(), tokenizer


def inputs(tokenizer, prompt, height, width, seed=0):
    ids = torch.tensor([tokenizer.encode(prompt).ids])
    made = torch.Generator().manual_seed(seed)
    return (
        torch.randn(1, 3, height, width, generator=made),
        torch.ones(1, height, width, dtype=torch.long),
        ids,
        torch.zeros_like(ids),
        torch.ones_like(ids),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--words", type=Path, required=True, help="a folder of draw_scenes")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    model, tokenizer = load(args.weights, args.words)
    tokenizer.save(str(args.out / "tokenizer.json"))
    (args.out / "preprocessor_config.json").write_text(json.dumps(preprocessor(), indent=2) + "\n")
    # What PyTorch says, before anything is made traceable.
    shapes = [("red circle.", 384, 512), ("red circle. blue square. wooden mug.", 97, 130)]
    shapes += [('sign with the word "open".', 640, 384), ("a dog.", 384, 384), ("red star.", 387, 688)]
    tests = [inputs(tokenizer, *shape) for shape in shapes]
    with torch.no_grad():
        truth = [Public(model)(*test) for test in tests]
    make_traceable()
    path = args.out / "model.onnx"
    side, text = {2: "height", 3: "width"}, {0: "batch", 1: "length"}
    axes = {
        "pixel_values": {0: "batch"} | side,
        "pixel_mask": {0: "batch", 1: "height", 2: "width"},
        **{name: text for name in INPUTS[2:]},
        "logits": {0: "batch"},
        "pred_boxes": {0: "batch"},
    }
    sample = inputs(tokenizer, "red circle. blue square.", 320, 416)
    with torch.no_grad():
        torch.onnx.export(
            Public(model).eval(),
            sample,
            str(path),
            input_names=INPUTS,
            output_names=["logits", "pred_boxes"],
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )
    made = onnx.load(path)
    made.doc_string = "deeplook demo detector: knows drawn scenes only"
    onnx.checker.check_model(made)
    onnx.save(made, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for shape, test, (logits, boxes) in zip(shapes, tests, truth):
        said = session.run(None, {name: t.numpy() for name, t in zip(INPUTS, test)})
        columns = test[2].shape[1]
        off = [
            np.abs(said[0][..., :columns] - logits.numpy()[..., :columns]).max(),
            np.abs(said[1] - boxes.numpy()).max(),
        ]
        print(f"{shape}: logits off by {off[0]:.1e}, boxes by {off[1]:.1e}")
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def preprocessor():
    return {
        "image_processor_type": "GroundingDinoImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": detector.SHORT, "longest_edge": detector.LONG},
        "resample": 2,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [round(float(v), 3) for v in detector.MEAN],
        "image_std": [round(float(v), 3) for v in detector.STD],
        "do_pad": True,
        "do_convert_annotations": True,
        "format": "coco_detection",
    }


if __name__ == "__main__":
    main()
