"""Teaches the decoder to say no. The finished encoder looks once at every scene and is asked as a user
asks: one phrase a prompt, and half of the phrases are not there, but nearly. What it hands to the decoder
is kept, and only the decoder's last layer learns, from that: minutes of training where the whole network would take
hours. Its attention to the picture and between queries stays switched off, so that a kept query and its
text are all it needs.

    python fit_decoder.py --weights run/fitted.pt --scenes scenes/train --out run/final.pt
"""

import argparse
import math
import random
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import detector
import export
from detector import corners, pixels
from train import View, decoder_like_encoder, focal, overlap, pad

QUERIES = 16  # The best of a prompt are kept.
SHAPES = [(512, 384), (384, 512), (384, 288), (288, 384), (288, 288), (288, 288), (256, 256), (256, 256)]
LENGTH = 20  # Most tokens of a prompt; longer ones are left out.
EDGE = math.log(0.3 / 0.7)  # The logit of `detect_object`'s threshold.


class Once(nn.Module):
    """A backbone that looks at the first of equal pictures."""

    def __init__(self, eyes):
        super().__init__()
        self.eyes = eyes

    def forward(self, pictures, mask):
        seen, where = self.eyes(pictures[:1], mask[:1])
        repeat = lambda t: t.expand(len(pictures), *t.shape[1:])
        return [(repeat(a), repeat(b)) for a, b in seen], [repeat(a) for a in where]


class Listener(nn.Module):
    """Stands in for the decoder and keeps what it is given."""

    def forward(self, **given):
        self.given = given
        raise StopIteration


class Nothing(nn.Module):
    """Stands in for an attention that is switched off."""

    def forward(self, hidden_states=None, queries=None, **_):
        return torch.zeros_like(hidden_states if queries is None else queries), None


def window(scene, size):
    """A part of a scene at about the scale at which the whole is seen."""
    scale = detector.SHORT / min(scene.picture.size) * math.exp(random.gauss(0, 0.2))
    scale = max(scale, *(seen / side for seen, side in zip(size, scene.picture.size)))
    w, h = size[0] / scale, size[1] / scale
    x, y = random.uniform(0, scene.picture.width - w), random.uniform(0, scene.picture.height - h)
    return x, y, x + w, y + h


@torch.no_grad()
def look(model, drawn, words, tokenizer, prompts):
    """For every prompt: the queries, their boxes, the text and its length; which columns are the phrase;
    and of each query whether it is of what was meant (1), of something else (0) or may be either (-1)."""
    inner, kept, begun = model.model, [], time.time()
    eyes, decoder = inner.backbone, inner.decoder
    inner.backbone, inner.decoder = Once(eyes), Listener()
    for number, scene in enumerate(drawn):
        size = random.choice(SHAPES)
        area = window(scene, size)
        views = [View(scene, area, size, words, tokenizer, 1, absent=0.5) for _ in range(prompts)]
        views = [view for view in views if len(view.ids) <= LENGTH]
        ids, mask = pad([view.ids for view in views])
        picture = pixels([views[0].picture]).expand(len(views), -1, -1, -1)
        try:
            inner(pixel_values=picture, input_ids=ids, attention_mask=mask)
        except StopIteration:
            given = inner.decoder.given
        for b, view in enumerate(views):
            boxes = given["reference_points"][b, :QUERIES]
            text = given["text_encoder_hidden_states"][b, : len(view.ids)]
            text = F.pad(text, (0, 0, 0, LENGTH - len(view.ids)))
            columns = torch.zeros(LENGTH)
            columns[[c for text_columns in view.columns for c in text_columns]] = 1
            truth = answers(view, boxes, size)
            kept.append((given["inputs_embeds"][b, :QUERIES], boxes, text, torch.tensor(len(view.ids)), columns, truth))
        if number % 20 == 19:
            print(f"{number + 1} scenes, {(time.time() - begun) / (number + 1):.2f} s each", flush=True)
    inner.backbone, inner.decoder = eyes, decoder
    return [torch.stack(part) for part in zip(*kept)]


def answers(view, boxes, size):
    unit = torch.tensor([*size, *size], dtype=torch.float32)
    truth = torch.zeros(len(boxes))
    for box in torch.as_tensor(view.unsure):
        truth[overlap(corners(boxes), (box / unit).expand_as(boxes)) > 0.1] = -1
    for i in view.meant:
        real = view.boxes[i] / unit
        near = overlap(corners(boxes), real.expand_as(boxes))
        truth[(near > 0.2) & (truth == 0)] = -1
        truth[near > 0.5] = 1
    return truth


def decode(model, queries, boxes, text, length):
    """The decoder's logits."""
    real = torch.arange(LENGTH) < length[:, None]
    out = model.model.decoder(
        inputs_embeds=queries,
        vision_encoder_hidden_states=None,
        text_encoder_hidden_states=text,
        text_encoder_attention_mask=~real,
        reference_points=boxes,
        valid_ratios=torch.ones(len(queries), 1, 2),
        return_dict=True,
    )
    return (out.last_hidden_state @ text.transpose(1, 2)).masked_fill(~real[:, None], -50)


def loss_of(model, batch):
    queries, boxes, text, length, columns, truth = batch
    logits = decode(model, queries, boxes, text, length)
    real = torch.arange(LENGTH) < length[:, None]
    sure = (truth >= 0).float()
    wanted = (truth == 1).float()[..., None] * columns[:, None]
    weight = sure[..., None] * real[:, None].float()
    dense = focal(logits, wanted, weight) / max(1.0, float(wanted.sum()))
    # What a user gets to see: the best score, where the thing is and elsewhere.
    best = logits.max(2)[0] - EDGE
    there = best.masked_fill(truth != 1, -50).max(1)[0][(truth == 1).any(1)]
    elsewhere = best.masked_fill(truth != 0, -50).max(1)[0]
    return dense + F.softplus(-there).mean() + 2 * F.softplus(elsewhere).mean()


@torch.no_grad()
def told(model, kept):
    """How often the best query is right, and at thresholds: right and found, and false alarms."""
    truth, parts = kept[5], zip(*(part.split(64) for part in kept[:4]))
    best = torch.cat([decode(model, *part).max(2)[0].sigmoid() for part in parts])
    score, at = best.max(1)
    present, absent = (truth == 1).any(1), (truth == 0).all(1)
    right = truth.gather(1, at[:, None])[:, 0] == 1
    text = f"right {right[present].float().mean():.3f}"
    for threshold in (0.2, 0.3, 0.4, 0.5):
        found = (right & (score > threshold))[present].float().mean()
        text += f"; {threshold}: found {found:.3f}, alarms {(score > threshold)[absent].float().mean():.3f}"
    return text


def fit(model, kept, held, steps, rate, batch=64):
    decoder = model.model.decoder
    own = [(layer.self_attn, layer.encoder_attn) for layer in decoder.layers]
    for layer in decoder.layers:
        layer.self_attn, layer.encoder_attn = Nothing(), Nothing()
        layer.dropout = layer.activation_dropout = 0.3  # It learns some thousand prompts by heart else.
    queries, decoder.config.num_queries = decoder.config.num_queries, QUERIES
    weights = [*decoder.layers[-1].parameters(), *decoder.layer_norm.parameters()]
    optimizer = torch.optim.AdamW(weights, rate, weight_decay=5e-2)
    print("at first:", told(model.eval(), held), flush=True)
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, step / 100) * (0.5 + 0.5 * math.cos(math.pi * step / steps))
        some = torch.randint(len(kept[0]), (batch,))
        loss = loss_of(model.train(), [part[some] for part in kept])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        if step % max(1, steps // 10) == 0:
            model.eval()
            print(f"step {step}, learned:", told(model, [part[: len(held[0])] for part in kept]), flush=True)
            print(f"step {step}, held out:", told(model, held), flush=True)
    for layer, attention in zip(decoder.layers, own):
        layer.self_attn, layer.encoder_attn = attention
    decoder.config.num_queries = queries


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", type=Path, required=True, help="of PyTorch, or an exported network")
    parser.add_argument("--scenes", nargs="+", required=True, help="folders of draw_scenes")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kept", type=Path, help="where to keep what was seen, for another try")
    parser.add_argument("--prompts", type=int, default=8, help="for a scene")
    parser.add_argument("--limit", type=int, help="so many scenes only")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rate", type=float, default=4e-4)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    detector.seed_all(args.seed)
    words = detector.vocabulary(args.scenes[0])
    model, tokenizer = export.load(args.weights, args.scenes[0])
    decoder_like_encoder(model)
    if args.kept and args.kept.exists():
        seen = torch.load(args.kept)
    else:
        seen = look(model, detector.scenes(args.scenes, most=600, limit=args.limit), words, tokenizer, args.prompts)
        if args.kept:
            torch.save(seen, args.kept)
    part = len(seen[0]) // 10
    fit(model, [t[:-part] for t in seen], [t[-part:] for t in seen], args.steps, args.rate)
    torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    main()
