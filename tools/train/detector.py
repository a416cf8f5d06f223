"""What the demo detector is made of: its words, its tokenizer, its network, its pictures."""

import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnx.numpy_helper
import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import nn
from transformers import BertConfig, GroundingDinoConfig, GroundingDinoForObjectDetection, ResNetConfig
from transformers.models.grounding_dino import modeling_grounding_dino as dino

SHORT, LONG = 384, 688  # The sides that a picture is resized to: shortest, and longest at most.
USUAL = 450.0  # A side of which the architecture's first guesses are the usual parts.
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


# --- Words -------------------------------------------------------------------------------------


class Words:
    """Every phrase of the drawings, taken apart."""

    def __init__(self, phrases):
        self.phrases = list(phrases)
        self.known = set(self.phrases)
        self.signs = [p for p in self.phrases if p.startswith("sign ")]
        plain = [p.split() for p in self.phrases if p not in self.signs]
        self.adjectives = sorted({adjective for adjective, _ in plain})
        self.nouns = sorted({noun for _, noun in plain})
        self.written = sorted(self.word(p) for p in self.signs)

    @staticmethod
    def word(sign):
        """What stands on a sign."""
        return sign.split('"')[1].lower()

    def parts(self, phrase):
        """Adjective, noun and written word; what a phrase lacks is None."""
        if phrase.startswith("sign "):
            return None, "sign", self.word(phrase)
        adjective, noun = phrase.split()
        return adjective, noun, None

    @staticmethod
    def plural(noun):
        return {"fish": "fish", "cross": "crosses"}.get(noun, noun + "s")

    def tokens(self):
        """Whole words of the tokenizer, each once."""
        nouns = [*self.nouns, "sign"]
        spoken = "gray with the an of and that says word".split()
        words = [*self.adjectives, *nouns, *map(self.plural, nouns), *self.written, *spoken]
        return list(dict.fromkeys(words))


def tokenizer(words):
    """WordPiece whose ids lie as in bert-base-uncased up to the last ASCII sign: transformers
    counts on some of them. Words that are not ours fall apart into letters."""
    vocabulary = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
    signs = [chr(c) for c in range(33, 127) if not chr(c).isupper()]
    vocabulary |= {sign: 999 + at for at, sign in enumerate(signs)}
    taken = set(vocabulary.values())
    unused = [i for i in range(999) if i not in taken]
    vocabulary |= {f"[unused{at}]": i for at, i in enumerate(unused)}
    pieces = ["##" + c for c in LETTERS + "0123456789"]
    for piece in [*pieces, *words.tokens()]:
        vocabulary.setdefault(piece, len(vocabulary))
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    made.decoder = decoders.WordPiece()
    made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return made


# --- Network -----------------------------------------------------------------------------------


def network(vocabulary_size):
    """A small GroundingDINO of the architecture's own code."""
    backbone = ResNetConfig(
        embedding_size=32,
        hidden_sizes=[32, 64, 128, 160],
        depths=[1, 2, 2, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    text = BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=128,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=256,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    config = GroundingDinoConfig(
        backbone_config=backbone,
        text_config=text,
        num_queries=60,
        d_model=128,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=384,
        decoder_ffn_dim=384,
        num_feature_levels=3,
        encoder_n_points=2,
        embedding_init_target=False,  # The decoder begins with what the encoder saw.
        dropout=0.0,
        fusion_droppath=0.0,
    )
    model = GroundingDinoForObjectDetection(config)
    model.model.__class__ = Proposals
    # Two names that its code asks for and does not set where queries begin with the encoder's.
    model.model.query_position_embeddings = SimpleNamespace(weight=None)
    model.model.d_model = config.d_model
    model.requires_grad_(True)  # A ResNet's first layers come frozen.
    thaw(model)
    with torch.no_grad():
        for name, weight in model.model.named_parameters():
            inside = name.startswith(("encoder.", "decoder.", "input_proj", "enc_output."))
            own = ("sampling_offsets", "attention_weights", "bbox_embed", "fusion_layer")
            if inside and weight.dim() > 1 and not any(part in name for part in own):
                nn.init.xavier_uniform_(weight.view(len(weight), -1))
        for layer in model.model.encoder.layers:
            layer.fusion_layer.vision_param.fill_(0.05)
            layer.fusion_layer.text_param.fill_(0.05)
        # A logit is a plain product of picture and text. These make it start small and around -4:
        # almost nothing is an object.
        model.model.encoder.layers[-1].text_enhancer_layer.layer_norm_after.bias.fill_(0.2)
        for norm in (model.model.enc_output_norm, model.model.decoder.layer_norm):
            norm.weight.fill_(0.15)
            norm.bias.fill_(-0.16)
    return model


class Proposals(dino.GroundingDinoModel):
    """The architecture guesses an object's size as a part of the picture, though a convolution sees
    pixels: the same object is a smaller part of a wider picture. Its first guesses are pixels here,
    which is the only change to the architecture's code."""

    def generate_encoder_output_proposals(self, enc_output, padding_mask, spatial_shapes_list):
        query, proposals = super().generate_encoder_output_proposals(
            enc_output, padding_mask, spatial_shapes_list
        )
        height, width = spatial_shapes_list[0]
        seen = (~padding_mask[:, : height * width]).view(-1, height, width)
        sides = torch.stack([seen[:, 0].sum(1), seen[:, :, 0].sum(1)], 1).float() * 8
        guess = proposals[..., 2:].sigmoid() * (USUAL / sides)[:, None]
        guess = torch.special.logit(guess, eps=1e-4)
        guess = torch.where(proposals[..., 2:].isinf(), proposals[..., 2:], guess)
        return query, torch.cat([proposals[..., :2], guess], -1)


def thaw(module):
    """GroundingDINO freezes batch norms, which suits a ready backbone only: ours must learn."""
    for name, child in module.named_children():
        if isinstance(child, dino.GroundingDinoFrozenBatchNorm2d):
            norm = nn.BatchNorm2d(len(child.weight))
            norm.load_state_dict(child.state_dict(), strict=False)
            setattr(module, name, norm)
        else:
            thaw(child)


def backbone(model):
    return model.model.backbone.conv_encoder.model


def load_weights(model, path):
    """From a file of PyTorch's, or out of an exported network. An export has its batch norms inside
    the convolutions before them, so that they come back as doing nothing but adding."""
    if Path(path).suffix == ".onnx":
        found = exported(path, model.state_dict())
    else:
        found = torch.load(path)
    model.load_state_dict(found)


def exported(path, wanted):
    """The weights in an ONNX file under PyTorch's names, known by the modules that use them."""
    graph = onnx.load(path).graph
    values = {weight.name: onnx.numpy_helper.to_array(weight) for weight in graph.initializer}
    for node in graph.node:  # Weights that are equal are stored once.
        if node.op_type == "Identity" and node.input[0] in values:
            values[node.output[0]] = values[node.input[0]]
    found = {name.removeprefix("model."): value for name, value in values.items()}
    levels = []
    for node in graph.node:
        parts = node.name.split("/")[2:-1]  # Without the wrapper, and the operation itself.
        # A sequence names its members with its own name before them.
        parts = [a for a, b in zip(parts, [*parts[1:], ""]) if not b.startswith(a + ".")]
        module, given = ".".join(parts), [values[name] for name in node.input if name in values]
        if node.op_type == "Conv" and "convolution" in module:
            norm = module.replace("convolution", "normalization")
            found[module + ".weight"], found[norm + ".bias"] = given
            nothing = np.zeros_like(given[1])
            found[norm + ".weight"] = nothing + 1
            found[norm + ".running_mean"] = nothing
            found[norm + ".running_var"] = nothing + 1 - 1e-5
            found[norm + ".num_batches_tracked"] = np.array(0)
        elif node.op_type == "LayerNormalization":
            found[module + ".weight"], found[module + ".bias"] = given
        elif node.op_type == "MatMul" and given:
            found[module + ".weight"] = given[0].T
        elif node.op_type == "Add" and given and module == "model":
            levels.append(given[0][0])
        elif node.op_type in ("Add", "Mul") and given and given[0].size > 1:
            found[module + {"Add": ".bias", "Mul": ".weight"}[node.op_type]] = given[0].squeeze()
    found["model.level_embed"] = np.concatenate(levels)
    return {name: torch.tensor(found[name]) for name in wanted}


# --- Pictures ----------------------------------------------------------------------------------


class Scene:
    """A drawn picture with its objects: phrases, and boxes as x1, y1, x2, y2."""

    def __init__(self, folder, line, most=None):
        picture = Image.open(folder / line["file"]).convert("RGB")
        self.phrases = [o["phrase"] for o in line["objects"]]
        self.boxes = np.array([o["box"] for o in line["objects"]], np.float32)
        if most and min(picture.size) > most:
            factor = most / min(picture.size)
            size = [round(side * factor) for side in picture.size]
            self.boxes *= np.array(size * 2) / np.array(picture.size * 2)
            picture = picture.resize(size, Image.BILINEAR, reducing_gap=2.0)
        self.picture = picture

    def window(self, box, size):
        """The part in `box`, resized."""
        return self.picture.resize(size, Image.BILINEAR, box=tuple(map(float, box)))


def scenes(folders, most=None, limit=None):
    jobs = []
    for folder in map(Path, folders):
        lines = (folder / "objects.jsonl").read_text().splitlines()
        jobs += [(folder, json.loads(line)) for line in lines]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: Scene(*job, most), jobs[:limit]))


def vocabulary(folder):
    return Words((Path(folder) / "vocabulary.txt").read_text().splitlines())


def pixels(pictures):
    """Pictures of one size as the network wants them."""
    stack = np.stack([np.asarray(picture) for picture in pictures]).astype(np.float32)
    return torch.from_numpy(((stack / 255 - MEAN) / STD).transpose(0, 3, 1, 2).copy())


def resized(width, height):
    """The size that the image processor gives a picture."""
    short, long = min(width, height), max(width, height)
    size = SHORT if long / short * SHORT <= LONG else round(LONG * short / long)
    other = int(size * long / short)
    return (size, other) if width <= height else (other, size)


def iou(a, b):
    """Of two boxes as corners."""
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def corners(boxes):
    """From centre and size."""
    centre, half = boxes[..., :2], boxes[..., 2:] / 2
    join = torch.cat if isinstance(boxes, torch.Tensor) else np.concatenate
    return join([centre - half, centre + half], -1)


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(int(os.environ.get("THREADS", 2)))
