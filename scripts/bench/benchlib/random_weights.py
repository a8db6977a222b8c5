"""Random weights for a folder that has the config.json of a Qwen2 model: `random_weights.py FOLDER`. Python alone writes them, in
bfloat16, so that a machine without PyTorch has a model of any size to measure.

Matrices have magnitudes between 2^-7 and 2^-5 with either sign, so that a forward pass has values of ordinary size; norms are 1
and biases are 0.
"""
import json
import pathlib
import random
import struct
import sys

# The upper byte of a bfloat16 is its sign and 7 bits of its exponent: half the bytes become 0x3C, half 0xBC.
SIGNS = bytes(0x3C if byte < 128 else 0xBC for byte in range(256))
ONE = struct.pack("<H", 0x3F80)
BLOCK = 1 << 23


def tensors(config):
    """Names and shapes, in the order in which they are written."""
    hidden, ffn, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    head = config.get("head_dim") or hidden // heads
    wide, narrow = heads * head, config.get("num_key_value_heads", heads) * head
    yield "model.embed_tokens.weight", [config["vocab_size"], hidden]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", [hidden]
        for name, width in (("q_proj", wide), ("k_proj", narrow), ("v_proj", narrow)):
            yield at + f"self_attn.{name}.weight", [width, hidden]
            yield at + f"self_attn.{name}.bias", [width]
        yield at + "self_attn.o_proj.weight", [hidden, wide]
        yield at + "post_attention_layernorm.weight", [hidden]
        yield at + "mlp.gate_proj.weight", [ffn, hidden]
        yield at + "mlp.up_proj.weight", [ffn, hidden]
        yield at + "mlp.down_proj.weight", [hidden, ffn]
    yield "model.norm.weight", [hidden]
    if not config.get("tie_word_embeddings", False):
        yield "lm_head.weight", [config["vocab_size"], hidden]


def numbers(draw, name, count):
    """The bytes of a tensor, in blocks."""
    for begin in range(0, count, BLOCK):
        many = min(BLOCK, count - begin)
        if "norm" in name:
            yield ONE * many
        elif name.endswith("bias"):
            yield bytes(2 * many)
        else:
            block = bytearray(2 * many)
            block[0::2] = draw.randbytes(many)
            block[1::2] = draw.randbytes(many).translate(SIGNS)
            yield bytes(block)


def write(folder, seed=0):
    """Writes model.safetensors next to config.json."""
    folder = pathlib.Path(folder)
    config = json.loads((folder / "config.json").read_text())
    if config["model_type"] != "qwen2":
        raise SystemExit(f"{folder}/config.json is of a {config['model_type']}; only the tensors of qwen2 are known here")
    header, counts, at = {}, {}, 0
    for name, shape in tensors(config):
        counts[name] = 1
        for length in shape:
            counts[name] *= length
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + 2 * counts[name]]}
        at += 2 * counts[name]
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    draw = random.Random(seed)
    with open(folder / "model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, count in counts.items():
            for block in numbers(draw, name, count):
                out.write(block)


if __name__ == "__main__":
    write(sys.argv[1])
