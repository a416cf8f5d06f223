"""Fits the head that says how large an object is to what the finished encoder sees: the network runs
once over some windows, and only that head learns, from what was kept. A minute of training where the
whole network would take an hour.

    python fit_boxes.py --weights run/model.pt --scenes scenes/train --out run/fitted.pt
"""

import argparse
import math
import random
from pathlib import Path

import torch

import detector
import export
from detector import corners, pixels
from train import NoDecoder, View, any_window, box_loss, centred, core_of, overlap, pad, places

SHAPES = [(1, 1), (4, 3), (4, 3), (4, 3), (3, 2), (3, 2), (3, 4), (16, 9), (2, 3), (5, 4)]


class Kept:
    """At every place that answers for an object: what the head sees, its first guess, the truth, and
    how much the place counts."""

    def __init__(self):
        self.seen, self.guess, self.truth, self.share, self.window = [], [], [], [], []

    def add(self, seen, guess, truth, window):
        count = len(seen)
        self.seen.append(seen)
        self.guess.append(guess)
        self.truth.append(truth.expand(count, 4))
        self.share.append(torch.full((count,), 1 / max(count, 1)))
        self.window.append(torch.full((count,), window))

    def joined(self):
        return [torch.cat(part) for part in vars(self).values()]


@torch.no_grad()
def look(model, drawn, words, tokenizer, windows):
    kept, heard = Kept(), []
    inner = model.model
    decoder, inner.decoder = inner.decoder, NoDecoder()
    listen = inner.encoder_output_bbox_embed.register_forward_hook(lambda _, given, said: heard.append((given[0], said)))
    random.shuffle(drawn)
    for number, scene in enumerate(drawn[:windows]):
        whole = random.random() < 0.6
        shape = scene.picture.size if whole else [1000 * side for side in random.choice(SHAPES)]
        size = detector.resized(*shape)
        view = View(scene, any_window(scene, size), size, words, tokenizer, 14)
        ids, mask = pad([view.ids])
        heard.clear()
        out = inner(pixel_values=pixels([view.picture]), input_ids=ids, attention_mask=mask)
        seen, said = heard[0]
        guess = (out.enc_outputs_coord_logits - said)[0]
        unit = torch.tensor([*size, *size], dtype=torch.float32)
        for box in view.boxes:
            core, _ = core_of(box.tolist(), places(size))
            core = core[:, 0]
            core = core[torch.isfinite(guess[core]).all(1)]
            kept.add(seen[0, core], guess[core], centred(box[None]) / unit, number)
        if number % 10 == 9:
            print(f"{number + 1} windows", flush=True)
    listen.remove()
    inner.decoder = decoder
    return kept.joined()


def fit(head, kept, steps, rate=1e-3, batch=256):
    seen, guess, truth, share, window = kept
    held = window >= 0.9 * window.max()

    def tell(step):
        for name, some in (("learned", ~held), ("held out", held)):
            with torch.no_grad():
                near = overlap(corners((head(seen[some]) + guess[some]).sigmoid()), corners(truth[some]))
            part = share[some] / share[some].sum()
            print(f"step {step}, {name}: half or more overlap {(part * (near >= 0.5)).sum():.3f}", flush=True)

    tell(0)
    optimizer = torch.optim.AdamW(head.parameters(), rate, weight_decay=1e-2)
    learned = (~held).nonzero()[:, 0]
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, step / 50) * (0.5 + 0.5 * math.cos(math.pi * step / steps))
        some = learned[torch.multinomial(share[learned], batch, True)]
        loss = box_loss((head(seen[some]) + guess[some]).sigmoid(), truth[some]) / batch
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % (steps // 4) == 0:
            tell(step)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", type=Path, required=True, help="of PyTorch, or an exported network")
    parser.add_argument("--scenes", nargs="+", required=True, help="folders of draw_scenes")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--windows", type=int, default=60)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    detector.seed_all(args.seed)
    words = detector.vocabulary(args.scenes[0])
    model, tokenizer = export.load(args.weights, args.scenes[0])
    kept = look(model, detector.scenes(args.scenes, most=600), words, tokenizer, args.windows)
    fit(model.model.encoder_output_bbox_embed, kept, args.steps)
    torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    main()
