"""Write a folder with the projections of a Hugging Face model in 8 bits (E4M3), with a scale for each block of 8 × 4 values, as
DeepSeek-V3 is published with blocks of 128 × 128: python scripts/goldens/fp8_folder.py FROM TO
`golden_model.py TO` then writes golden.json; transformers dequantises the folder on a CPU.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

ROWS, COLUMNS = 8, 4
source, target = map(Path, sys.argv[1:3])
target.mkdir(parents=True)
tensors = {}
for name, tensor in load_file(source / "model.safetensors").items():
    if "_proj." not in name:
        tensors[name] = tensor
        continue
    rows, columns = tensor.shape
    blocks = tensor.reshape(rows // ROWS, ROWS, columns // COLUMNS, COLUMNS)
    scales = blocks.abs().amax((1, 3)) / torch.finfo(torch.float8_e4m3fn).max
    tensors[name] = (blocks / scales[:, None, :, None]).reshape(rows, columns).to(torch.float8_e4m3fn)
    tensors[f"{name}_scale_inv"] = scales
save_file(tensors, target / "model.safetensors", {"format": "pt"})
config = json.loads((source / "config.json").read_text())
config["quantization_config"] = {
    "activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [ROWS, COLUMNS],
}
(target / "config.json").write_text(json.dumps(config, indent=2) + "\n")
shutil.copy(source / "generation_config.json", target)
