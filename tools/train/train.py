"""Trains the demo detector, from nothing, on drawn scenes.

First the backbone alone learns to name what it sees in small windows around single objects: that
takes a hundredth of a whole picture's time, and shapes are what a detector learns last. Then the
whole network learns to ground phrases, with two losses: a dense one on the encoder's proposals
(every place inside an object answers for it) and one on the decoder's queries.

    python train.py --scenes scenes/a scenes/b --check scenes/c --out run/
"""

import argparse
import math
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from transformers.models.grounding_dino.modeling_grounding_dino import GroundingDinoDecoderOutput

import detector
from detector import SHORT, corners, iou, pixels

WINDOW = 72  # Side of the backbone's first pictures.
STRIDES = (8, 16, 32)
LEVEL_SIDES = (40, 88)  # Objects up to so many pixels belong to the first and second level.


# --- First: the backbone names things ------------------------------------------------------------


def learn_to_name(model, drawn, words, seconds, batch=64, rate=2e-3):
    body = detector.backbone(model).to(memory_format=torch.channels_last)
    sorts = {"adjective": words.adjectives, "noun": [*words.nouns, "sign"], "word": words.written}
    sizes = [len(names) for names in sorts.values()]
    heads = nn.ModuleList(nn.Conv2d(c, sum(sizes), 1) for c in body.channels)
    weights = [*body.parameters(), *heads.parameters()]
    optimizer = torch.optim.AdamW(weights, rate, weight_decay=1e-3)
    things = [(scene, at) for scene in drawn for at in range(len(scene.phrases))]
    number = [{name: i for i, name in enumerate(names)} for names in sorts.values()]
    body.train()
    begun, step, right = time.time(), 0, {}
    while (done := (time.time() - begun) / seconds) < 1:
        pictures, places, truth = [], [], []
        for scene, at in random.sample(things, batch):
            picture, place = around(scene, scene.boxes[at])
            parts = words.parts(scene.phrases[at])
            if parts[1] != "sign" and random.random() < 0.5:
                picture = picture[:, ::-1]
                place = (WINDOW - 1 - place[0], place[1])
            pictures.append(picture)
            places.append(place)
            truth.append([n.get(part, -1) for n, part in zip(number, parts)])
        set_rate(optimizer, rate, done, warm=0.03)
        maps = body(pixels(pictures).contiguous(memory_format=torch.channels_last)).feature_maps
        truth, loss = torch.tensor(truth), 0
        for stride, head, seen in zip(STRIDES, heads, maps):
            x = torch.tensor([int(p[0] / stride) for p in places])
            y = torch.tensor([int(p[1] / stride) for p in places])
            said = head(seen)[torch.arange(batch), :, y, x].split(sizes, 1)
            for i, (sort, logits) in enumerate(zip(sorts, said)):
                there = truth[:, i] >= 0
                if there.any():
                    loss = loss + F.cross_entropy(logits[there], truth[there, i])
                    hits = (logits[there].argmax(1) == truth[there, i]).float().mean().item()
                    key = f"{sort[0]}{stride}"
                    right[key] = 0.95 * right.get(key, 0) + 0.05 * hits
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 5.0)
        optimizer.step()
        step += 1
        if step % 200 == 0:
            told = " ".join(f"{k} {v:.2f}" for k, v in right.items())
            print(f"name {done:.2f} step {step} loss {loss.item():.2f} {told}", flush=True)


def small_window(scene, box):
    """A small window with an object in it."""
    side = max(box[2] - box[0], box[3] - box[1])
    factor = SHORT / min(scene.picture.size) * math.exp(random.uniform(-0.2, 0.9))
    factor = min(factor, random.uniform(0.75, 0.95) * WINDOW / side)
    half = WINDOW / factor / 2
    slack = max(half - side / 2, 0) * 0.8
    centre = [(box[i] + box[i + 2]) / 2 + random.uniform(-slack, slack) for i in (0, 1)]
    x, y = [min(max(c, half), s - half) for c, s in zip(centre, scene.picture.size)]
    return x - half, y - half, x + half, y + half


def around(scene, box):
    """Such a window's pixels, and where the object's centre lies."""
    window = small_window(scene, box)
    factor = WINDOW / (window[2] - window[0])
    place = [((box[i] + box[i + 2]) / 2 - window[i]) * factor for i in (0, 1)]
    return np.asarray(scene.window(window, (WINDOW, WINDOW))), place


# --- Then: the whole network grounds phrases -----------------------------------------------------


class Prompt:
    """Phrases for a picture: some fit, some nearly fit, some are nonsense. With the chance `absent` none
    is meant to fit."""

    def __init__(self, words, present, most, absent):
        self.words, self.meant, self.texts = words, [], []
        present = sorted(set(present))
        count = 1 if most == 1 or random.random() < 0.15 else random.randint(2, most)
        fitting = random.sample(present, min(len(present), max(1, round(count * 0.55))))
        if random.random() < absent:
            fitting = []
        meant = list(fitting)
        while len(meant) < count:
            other = self.near(random.choice(present)) if present else random.choice(words.phrases)
            if other not in meant:
                meant.append(other)
        random.shuffle(meant)
        for phrase in meant:
            text = phrase.lower()
            adjective, noun, _ = words.parts(phrase) if phrase in words.known else (None,) * 3
            dice = random.random()
            if adjective and dice < 0.06:  # The noun alone.
                phrase, text = noun, noun
            elif noun and dice < 0.12:
                text = text.replace(noun, words.plural(noun), 1)
            elif dice < 0.22:
                text = "the " + text
            if phrase not in self.meant:
                self.meant.append(phrase)
                self.texts.append(text)

    def near(self, phrase):
        words = self.words
        adjective, noun, _ = words.parts(phrase)
        dice = random.random()
        if dice < 0.12:
            return self.nonsense(adjective, noun)
        if noun == "sign":
            return random.choice(words.signs)
        if dice < 0.5:
            return f"{adjective} {random.choice(words.nouns)}"
        if dice < 0.9:
            return f"{random.choice(words.adjectives)} {noun}"
        return random.choice(words.phrases)

    @staticmethod
    def nonsense(adjective, noun):
        strange = "".join(random.choices(detector.LETTERS, k=random.randint(2, 9)))
        return random.choice([strange, f"{adjective or 'a'} {strange}", f"{strange} {noun}"])

    def fits(self, phrase):
        """The numbers of the texts that mean an object."""
        _, noun, _ = self.words.parts(phrase)
        return [i for i, meant in enumerate(self.meant) if meant in (phrase, noun)]


def encode(tokenizer, texts):
    """Token ids of the texts as one prompt, and the columns of each text."""
    ids, columns = [101], []
    for text in texts:
        piece = tokenizer.encode(text, add_special_tokens=False).ids
        columns.append(list(range(len(ids), len(ids) + len(piece))))
        ids += [*piece, 1012]
    return [*ids, 102], columns


class View:
    """A window of a scene with a prompt: what is in it, and which texts mean it."""

    def __init__(self, scene, area, size, words, tokenizer, most, absent=0.06):
        (x1, y1, x2, y2), (w, h) = area, size
        self.picture = scene.window(area, size)
        scale = np.array([w / (x2 - x1), h / (y2 - y1)] * 2, np.float32)
        boxes = (scene.boxes - np.array([x1, y1, x1, y1], np.float32)) * scale
        cut = boxes.clip(0, np.array([w, h, w, h], np.float32))
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        left = (cut[:, 2] - cut[:, 0]) * (cut[:, 3] - cut[:, 1]) / area
        whole = left > 0.8
        self.boxes = torch.from_numpy(cut[whole])
        # What is cut off may count as there or not.
        self.unsure = cut[(left > 0.05) & ~whole]
        phrases = [phrase for phrase, good in zip(scene.phrases, whole) if good]
        prompt = Prompt(words, phrases, most, absent)
        self.ids, self.columns = encode(tokenizer, prompt.texts)
        self.fits = [prompt.fits(phrase) for phrase in phrases]
        self.meant = [i for i, fits in enumerate(self.fits) if fits]

    def marked(self, i):
        """The columns of the texts that mean an object."""
        return torch.tensor([c for text in self.fits[i] for c in self.columns[text]])

    def by_text(self, logits):
        """The mean logit of each text."""
        return torch.stack([logits[..., columns].mean(-1) for columns in self.columns], -1)


def any_window(scene, size):
    """All of a scene that the shape allows, or a part of it."""
    (w, h), (sw, sh) = size, scene.picture.size
    fit = min(sw / w, sh / h)
    zoom = 1.0 if random.random() < 0.55 else math.exp(random.uniform(0, 1.0))
    ww, wh = w * fit / zoom, h * fit / zoom
    x, y = random.uniform(0, sw - ww), random.uniform(0, sh - wh)
    return x, y, x + ww, y + wh


def focal(logits, truth, weight):
    chance = logits.sigmoid()
    entropy = F.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    miss = torch.where(truth > 0.5, 1 - chance, chance)
    share = torch.where(truth > 0.5, 0.35, 0.65)
    return (share * miss**2 * entropy * weight).sum()


def box_loss(said, truth):
    """Of boxes as centre and size; distances count in parts of the object."""
    away = (said - truth).abs() / truth[..., 2:].repeat(1, 2)
    return away.clamp(max=4).sum() + 3 * (1 - overlap(corners(said), corners(truth))).sum()


def overlap(a, b):
    """Generalised intersection over union, pair by pair."""
    area = lambda c: (c[..., 2] - c[..., 0]).clamp(0) * (c[..., 3] - c[..., 1]).clamp(0)
    both = area(torch.cat([torch.maximum(a, b)[..., :2], torch.minimum(a, b)[..., 2:]], -1))
    hull = area(torch.cat([torch.minimum(a, b)[..., :2], torch.maximum(a, b)[..., 2:]], -1))
    union = area(a) + area(b) - both
    return both / union.clamp(1e-9) - (hull - union) / hull.clamp(1e-9)


def places(size):
    """Centre in pixels and level of each of the encoder's tokens."""
    found = []
    for level, stride in enumerate(STRIDES):
        w, h = (-(-side // stride) for side in size)
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        x, y = (x.flatten() + 0.5) * (size[0] / w), (y.flatten() + 0.5) * (size[1] / h)
        found.append(torch.stack([x, y, torch.full_like(x, level)], 1))
    return torch.cat(found)


def dense_loss(out, size, views, mask, with_boxes):
    """Every place inside an object answers for it: which texts mean it, and its box."""
    length = mask.shape[1]
    unit = torch.tensor([*size, *size], dtype=torch.float32)
    where = places(size)
    logits = out.enc_outputs_class[..., :length].clamp(-50, 50)
    truth = torch.zeros_like(logits)
    weight = mask[:, None].float().expand_as(truth).clone()
    choice, box, told = [], [], 0
    for b, view in enumerate(views):
        for x1, y1, x2, y2 in view.unsure:
            inside = (where[:, 0] > x1) & (where[:, 0] < x2) & (where[:, 1] > y1) & (where[:, 1] < y2)
            weight[b, inside] = 0
        cores = [core_of(thing, where) for thing in view.boxes.tolist()]
        said = view.by_text(logits[b])
        for i in view.meant:
            core, rim = cores[i]
            columns = view.marked(i)
            weight[b, rim, columns] = 0
            truth[b, core, columns] = 1
            weight[b, core, columns] = 1
            # Which of the texts?
            choice.append(pick(said[core[:, 0]], view.fits[i]))
            if with_boxes:
                real = centred(view.boxes[i][None]) / unit
                found = out.enc_outputs_coord_logits[b, core[:, 0]].sigmoid()
                box.append(box_loss(found, real.expand_as(found)) / len(core))
        # Which of the objects?
        best = [said[core[:, 0]].max(0)[0] for core, _ in cores]
        if len(best) > 1:
            best = torch.stack(best, 1)
            for text in {t for i in view.meant for t in view.fits[i]}:
                choice.append(pick(best[text][None], [i for i in view.meant if text in view.fits[i]]))
    total = focal(logits, truth, weight) / max(1.0, float((truth * weight).sum()))
    if choice:
        total = total + 0.5 * torch.stack(choice).mean()
    return total + torch.stack(box).mean() if box else total


def pick(logits, right):
    """Cross entropy where any of the right ones will do."""
    return (logits.logsumexp(1) - logits[:, right].logsumexp(1)).mean()


def core_of(box, where):
    """The places that answer for an object, and those that may say of it what they like."""
    x1, y1, x2, y2 = box
    level = sum(math.sqrt((x2 - x1) * (y2 - y1)) > limit for limit in LEVEL_SIDES)
    away = torch.maximum(
        (where[:, 0] - (x1 + x2) / 2).abs() / (x2 - x1), (where[:, 1] - (y1 + y2) / 2).abs() / (y2 - y1)
    )
    core = (away < 0.25) & (where[:, 2] == level)
    if not core.any():
        core[(away + 9.0 * (where[:, 2] != level)).argmin()] = True
    rim = (away < 0.5) & ((where[:, 2] - level).abs() <= 1) & ~core
    return core.nonzero(), rim.nonzero()


def decoder_loss(out, size, views, mask):
    unit = torch.tensor([*size, *size], dtype=torch.float32)
    return sum(matched(*stage, unit, views, mask) for stage in stages(out, mask.shape[1]))


def stages(out, length):
    """Logits and boxes after each layer of the decoder."""
    hidden, text = out.intermediate_hidden_states, out.encoder_last_hidden_state_text
    for level in range(hidden.shape[1]):
        before = out.init_reference_points if level == 0 else out.intermediate_reference_points[:, level - 1]
        logits = hidden[:, level] @ text.transpose(1, 2)
        delta = out.box_heads[level](hidden[:, level])
        yield logits[..., :length], (delta + torch.special.logit(before, eps=1e-5)).sigmoid()


def matched(logits, boxes, unit, views, mask):
    """Every query whose box lies on an object answers for it. So several find the same object, and
    whoever uses the detector must drop the lesser ones; one query an object takes far longer to
    learn."""
    truth, weight = torch.zeros_like(logits), mask[:, None].float().expand_as(logits).clone()
    box, choice = [], []
    for b, view in enumerate(views):
        said = view.by_text(logits[b])
        for thing in view.unsure:
            inside = overlap(corners(boxes[b].detach()) * unit, torch.from_numpy(thing)[None])
            weight[b, inside > 0] = 0
        if not view.meant:
            continue
        real = centred(view.boxes[view.meant]) / unit
        with torch.no_grad():
            near = overlap(corners(boxes[b])[:, None], corners(real)[None])
            best, owner = near.max(1)
            near[torch.arange(len(near)), owner] += 1  # Of two objects the nearer one.
            near -= 1
        for t, i in enumerate(view.meant):
            good = near[:, t] > 0.45
            if not good.any() and best[near[:, t].argmax()] > 0.1:
                good[near[:, t].argmax()] = True
            query, columns = good.nonzero(), view.marked(i)
            weight[b, ((near[:, t] > 0.2) & ~good).nonzero(), columns] = 0
            if len(query):
                truth[b, query, columns] = 1
                weight[b, query, columns] = 1
                found = boxes[b, query[:, 0]]
                box.append(box_loss(found, real[t].expand_as(found)) / len(query))
                choice.append(pick(said[query[:, 0]], view.fits[i]))
    loss = focal(logits, truth, weight) / max(1.0, float(truth.sum()))
    return loss + torch.stack(box).mean() + 0.5 * torch.stack(choice).mean() if box else loss


def centred(boxes):
    return torch.cat([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], 1)


def set_rate(optimizer, rate, done, warm):
    factor = min(1, done / warm) * (0.02 + 0.98 * (0.5 + 0.5 * math.cos(math.pi * min(done, 1))))
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("share", 1) * factor


def pad(rows):
    ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
    return ids, (ids != 0).long()


class NoDecoder(nn.Module):
    """Stands in for the decoder while only the encoder learns."""

    def forward(self, **_):
        return GroundingDinoDecoderOutput()


def learn_words(model, drawn, words, tokenizer, args, batch=48, rate=1e-3):
    """In small windows again: which texts mean an object. The backbone stays as it is."""
    eyes, decoder = detector.backbone(model), model.model.decoder
    eyes.requires_grad_(False)
    model.model.decoder = NoDecoder()
    weights = [p for p in model.model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, rate, weight_decay=1e-4)
    things = [(scene, box) for scene in drawn for box in scene.boxes]
    size, seconds = (WINDOW, WINDOW), 60 * args.word_minutes
    begun, step, mean = time.time(), 0, 0.0
    model.train()
    eyes.eval()
    while (done := (time.time() - begun) / seconds) < 1:
        views = [
            View(scene, small_window(scene, box), size, words, tokenizer, 9)
            for scene, box in random.sample(things, batch)
        ]
        ids, mask = pad([view.ids for view in views])
        set_rate(optimizer, rate, done, warm=0.03)
        out = model.model(
            pixel_values=pixels([v.picture for v in views]), input_ids=ids, attention_mask=mask
        )
        loss = dense_loss(out, size, views, mask, with_boxes=False)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        step += 1
        mean += (loss.item() - mean) / min(step, 50)
        if step % 50 == 0:
            print(f"words {done:.2f} step {step} loss {mean:.3f} right {right_text(out, size, views):.2f}", flush=True)
    model.model.decoder = decoder
    eyes.requires_grad_(True)


@torch.no_grad()
def right_text(out, size, views):
    """How often the text that fits an object best is one that means it."""
    where, right = places(size), []
    for b, view in enumerate(views):
        said = view.by_text(out.enc_outputs_class[b])
        for i in view.meant:
            core, _ = core_of(view.boxes[i].tolist(), where)
            right.append(int(said[core[:, 0]].mean(0).argmax()) in view.fits[i])
    return float(np.mean(right))


@torch.no_grad()
def decoder_like_encoder(model):
    """Lets the decoder begin with saying what the encoder says: it adds nothing to the encoder's
    queries and leaves their boxes as they are."""
    inner = model.model
    for layer in inner.decoder.layers:
        looks = (layer.self_attn.out_proj, layer.encoder_attn_text.out_proj, layer.encoder_attn.output_proj)
        for quiet in (*looks, layer.fc2):
            quiet.weight.zero_()
            quiet.bias.zero_()
        norms = (layer.self_attn_layer_norm, layer.encoder_attn_text_layer_norm, layer.encoder_attn_layer_norm)
        for norm in (*norms, layer.final_layer_norm):
            norm.weight.fill_(1)
            norm.bias.zero_()
    # Each of these norms took away mean and deviation of a query; the last one gives them back.
    before, after = inner.enc_output_norm, inner.decoder.layer_norm
    after.weight.fill_((before.weight.square().mean() + before.bias.var()).sqrt())
    after.bias.fill_(before.bias.mean())
    for head in model.bbox_embed:
        head.layers[-1].weight.zero_()
        head.layers[-1].bias.zero_()


def learn_to_ground(model, drawn, words, tokenizer, args, check, best):
    eyes = detector.backbone(model)
    eyes.embedder.requires_grad_(False)  # Edges and colours are known by now.
    eyes.encoder.stages[0].requires_grad_(False)
    body = set(eyes.parameters())
    rest = [p for p in model.parameters() if p not in body]
    groups = [{"params": list(body), "share": args.body_share}, {"params": rest, "share": 1.0}]
    optimizer = torch.optim.AdamW(groups, args.rate, weight_decay=1e-4)
    shapes = [(1, 1), (4, 3), (4, 3), (4, 3), (3, 2), (3, 2), (3, 4), (16, 9), (2, 3), (5, 4)]
    seconds = 60 * args.ground_minutes
    begun, step, mean, last = time.time(), 0, np.zeros(2), time.time()
    while (done := (time.time() - begun) / seconds) < 1:
        model.train()
        eyes.eval()  # Its batch norms keep what they have learned.
        aspect = random.choice(shapes)
        size = detector.resized(aspect[0] * 1000, aspect[1] * 1000)
        views = [
            View(scene, any_window(scene, size), size, words, tokenizer, args.phrases)
            for scene in random.sample(drawn, args.batch)
        ]
        ids, mask = pad([view.ids for view in views])
        set_rate(optimizer, args.rate, done, warm=0.02)
        out = model(
            pixel_values=pixels([v.picture for v in views]), input_ids=ids, attention_mask=mask
        )
        out.box_heads = model.bbox_embed
        dense = dense_loss(out, size, views, mask, with_boxes=True)
        decoded = decoder_loss(out, size, views, mask)
        optimizer.zero_grad()
        (dense + decoded).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        mean += (np.array([dense.item(), decoded.item()]) - mean) / min(step, 50)
        if step % 50 == 0:
            pace = (time.time() - begun) / step
            told = f"dense {mean[0]:.3f} decoder {mean[1]:.3f} right {right_text(out, size, views):.2f}"
            print(f"ground {done:.2f} step {step} {told} {pace:.2f} s", flush=True)
        if time.time() - last > 60 * args.check_minutes or (time.time() - begun) >= seconds:
            found = recall(model, check, tokenizer)
            print(f"check {done:.2f} recall@1 {found}", flush=True)
            torch.save(model.state_dict(), best)
            last = time.time()


@torch.no_grad()
def recall(model, check, tokenizer):
    """How often the best box for a phrase hits an object that it means, and by kind."""
    model.eval()
    hits, loose = {}, []
    for scene in check:
        size = detector.resized(*scene.picture.size)
        image = pixels([scene.picture.resize(size)])
        for phrase in sorted(set(scene.phrases)):
            ids, mask = pad([encode(tokenizer, [phrase.lower()])[0]])
            out = model(pixel_values=image, input_ids=ids, attention_mask=mask)
            score = out.logits[0].sigmoid().max(1)[0]
            box = corners(out.pred_boxes[0, score.argmax()].numpy()) * np.array(scene.picture.size * 2)
            near = [iou(box, real) for real, p in zip(scene.boxes, scene.phrases) if p == phrase]
            kind = "sign" if phrase.startswith("sign") else "plain"
            hits.setdefault(kind, []).append(max(near) >= 0.5)
            loose.append(score.max().item())
    every = [hit for some in hits.values() for hit in some]
    told = {kind: round(float(np.mean(some)), 3) for kind, some in hits.items()}
    return round(float(np.mean(every)), 3), told, f"mean score {np.mean(loose):.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scenes", nargs="+", required=True, help="folders of draw_scenes")
    parser.add_argument("--check", required=True, help="another such folder, of another seed")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--named", type=Path, help="a backbone from an earlier run: no first phase")
    parser.add_argument("--start", type=Path, help="a whole network from an earlier run")
    parser.add_argument("--name-minutes", type=float, default=10)
    parser.add_argument("--word-minutes", type=float, default=8)
    parser.add_argument("--ground-minutes", type=float, default=40)
    parser.add_argument("--check-minutes", type=float, default=5)
    parser.add_argument("--check-scenes", type=int, default=15)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--phrases", type=int, default=18, help="most in a prompt")
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--body-share", type=float, default=0.3, help="of the rate, for the backbone")
    args = parser.parse_args()
    detector.seed_all(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    words = detector.vocabulary(args.check)
    tokenizer = detector.tokenizer(words)
    model = detector.network(tokenizer.get_vocab_size())
    if args.start:
        detector.load_weights(model, args.start)
    drawn = detector.scenes(args.scenes, most=600)
    check = detector.scenes([args.check], limit=args.check_scenes)
    print(f"{len(drawn)} scenes, {sum(len(s.phrases) for s in drawn)} objects", flush=True)
    if args.named:
        detector.backbone(model).load_state_dict(torch.load(args.named))
    elif not args.start:  # Else only the last phase goes on.
        learn_to_name(model, drawn, words, 60 * args.name_minutes)
        torch.save(detector.backbone(model).state_dict(), args.out / "named.pt")
    if not args.start:
        learn_words(model, drawn, words, tokenizer, args)
        torch.save(model.state_dict(), args.out / "words.pt")
        decoder_like_encoder(model)
    if args.ground_minutes:
        learn_to_ground(model, drawn, words, tokenizer, args, check, args.out / "model.pt")
        print("check at the end: recall@1", recall(model, check, tokenizer))
        torch.save(model.state_dict(), args.out / "model.pt")


if __name__ == "__main__":
    main()
