"""Writes a LLaVA-style model with random weights: a GGUF of a language model and its mmproj.

It says nothing sensible, but a real llama.cpp server loads it, decodes pictures for it and applies its
chat template. Both files together are under 1 MB.

    python tiny_model.py FOLDER
"""

import pathlib
import sys

import gguf
import numpy as np

WIDTH, FEED_FORWARD, HEADS, LAYERS = 32, 64, 2, 1
CONTEXT = 65536
VISION_WIDTH, VISION_HEADS, VISION_LAYERS = 32, 2, 2
SIDE, PATCH = 56, 14

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

random = np.random.default_rng(1)


def weights(*shape):
    return (random.standard_normal(shape) * 0.05).astype(np.float32)


def language_model(path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny-random-llava")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    # One token for each byte, and what a tokenizer needs around them.
    kinds = gguf.TokenType
    tokens = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
    tokens += [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256)]
    tokens += [("▁", kinds.NORMAL)] + [(chr(code), kinds.NORMAL) for code in range(33, 127)]
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)

    writer.add_tensor("token_embd.weight", weights(len(tokens), WIDTH))
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", weights(len(tokens), WIDTH))
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"{block}{name}.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"{block}{name}.weight", weights(WIDTH, WIDTH))
        for name in ("ffn_gate", "ffn_up"):
            writer.add_tensor(f"{block}{name}.weight", weights(FEED_FORWARD, WIDTH))
        writer.add_tensor(f"{block}ffn_down.weight", weights(WIDTH, FEED_FORWARD))
    finish(writer)


def eyes(path):
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_string("general.type", "mmproj")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "mlp")
    writer.add_bool("clip.use_gelu", False)
    writer.add_uint32("clip.vision.image_size", SIDE)
    writer.add_uint32("clip.vision.patch_size", PATCH)
    writer.add_uint32("clip.vision.embedding_length", VISION_WIDTH)
    writer.add_uint32("clip.vision.feed_forward_length", FEED_FORWARD)
    writer.add_uint32("clip.vision.projection_dim", WIDTH)
    writer.add_uint32("clip.vision.block_count", VISION_LAYERS)
    writer.add_uint32("clip.vision.attention.head_count", VISION_HEADS)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])

    def linear(name, rows, columns):
        writer.add_tensor(f"{name}.weight", weights(rows, columns))
        writer.add_tensor(f"{name}.bias", np.zeros(rows, np.float32))

    def norm(name):
        writer.add_tensor(f"{name}.weight", np.ones(VISION_WIDTH, np.float32))
        writer.add_tensor(f"{name}.bias", np.zeros(VISION_WIDTH, np.float32))

    places = (SIDE // PATCH) ** 2 + 1
    writer.add_tensor("v.class_embd", weights(VISION_WIDTH))
    writer.add_tensor("v.patch_embd.weight", weights(VISION_WIDTH, 3, PATCH, PATCH))
    writer.add_tensor("v.position_embd.weight", weights(places, VISION_WIDTH))
    norm("v.pre_ln")
    for layer in range(VISION_LAYERS):
        block = f"v.blk.{layer}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            linear(block + name, VISION_WIDTH, VISION_WIDTH)
        norm(block + "ln1")
        norm(block + "ln2")
        linear(block + "ffn_up", FEED_FORWARD, VISION_WIDTH)
        linear(block + "ffn_down", VISION_WIDTH, FEED_FORWARD)
    linear("mm.0", WIDTH, VISION_WIDTH)
    linear("mm.2", WIDTH, WIDTH)
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    language_model(folder / "model.gguf")
    eyes(folder / "mmproj.gguf")
