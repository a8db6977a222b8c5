"""Random weights for a folder that has a config.json, as transformers draws and saves them: `weights.py FOLDER`."""
import sys

import torch
import transformers

folder = sys.argv[1]
torch.manual_seed(0)
model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder), dtype=torch.float32)
model.save_pretrained(folder)
