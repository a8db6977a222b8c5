"""Random weights for a folder with a config.json, initialized and saved by transformers: `weights.py FOLDER`."""
import sys

import torch
import transformers

folder = sys.argv[1]
torch.manual_seed(0)
model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder), dtype=torch.float32)
model.save_pretrained(folder)
