"""Matrices in NF4 of bitsandbytes on a CPU, for tests/golden/nf4/formats.safetensors.

Run with torch, safetensors and bitsandbytes: python scripts/goldens/golden_nf4.py FOLDER
"""

import os
import sys

import bitsandbytes.functional as F
import torch
from safetensors.torch import save_file

SHAPES = {
    "square": (64, 64),
    "odd_row": (5, 7),
    "short": (3, 40),
    "long": (24, 520),
    "nested": (130, 130),
    "tiny": (1, 1),
    "remainder": (33, 66),
    "zeros": (4, 64),
    "outliers": (40, 64),
}

torch.manual_seed(1)
out = {"map": F.create_dynamic_map(), "table": F.get_4bit_type("nf4", device="cpu")}
for name, shape in SHAPES.items():
    w = torch.randn(shape) * 0.05
    if name == "zeros":
        w[1:3] = 0
    if name == "outliers":
        w[3, 5], w[30, 60] = 7.0, -9.0
        w[2, :16] = torch.linspace(-1, 1, 16)
    codes, state = F.quantize_4bit(w, quant_type="nf4", compress_statistics=False)
    out[f"{name}.w"], out[f"{name}.codes"], out[f"{name}.absmax"] = w, codes.reshape(-1), state.absmax
    out[f"{name}.values"] = F.dequantize_4bit(codes, state)
    codes, state = F.quantize_4bit(w, quant_type="nf4", compress_statistics=True)
    assert torch.equal(codes.reshape(-1), out[f"{name}.codes"])
    out[f"{name}.nested_codes"], out[f"{name}.nested_absmax"] = state.absmax, state.state2.absmax
    out[f"{name}.offset"] = state.offset.reshape(1)
    out[f"{name}.nested_values"] = F.dequantize_4bit(codes, state)
os.makedirs(sys.argv[1], exist_ok=True)
save_file({name: tensor.contiguous() for name, tensor in out.items()}, os.path.join(sys.argv[1], "formats.safetensors"))
