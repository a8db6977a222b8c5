"""Log-probabilities of models with an adapter over weights in NF4, in transformers, PEFT and bitsandbytes on a CPU, for
tests/golden/nf4/log-probs.json. Every second model has double quantisation.

Run with torch, transformers, peft and bitsandbytes, in the root of the repository: python scripts/goldens/golden_nf4_log_probs.py
"""

import copy
import json
from pathlib import Path

import bitsandbytes
import peft
import torch
import transformers
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

GOLDEN = Path("tests/golden")
# GPT-2 and GPT-NeoX have matrices that hold q, k and v together: their blocks are others here.
MODELS = ["llama", "qwen3_5_text", "lfm2"]


def product(x, codes, quant_state, out=None, bias=None):
    """Dequantises a matrix as one row: on CPUs, bitsandbytes 0.50.2 takes wrong scales where 64 does not divide a row."""
    shape, state = quant_state.shape, copy.copy(quant_state)
    state.shape = torch.Size([1, shape.numel()])
    weight = bitsandbytes.functional.dequantize_4bit(codes, state).reshape(shape)
    return torch.nn.functional.linear(x, weight.to(x.dtype), bias)


bitsandbytes.matmul_4bit = product
cases = {}
for number, name in enumerate(MODELS):
    folder = next(path for path in (GOLDEN / "models" / name, GOLDEN / "models-2026" / name) if path.exists())
    nested = number % 2 == 1
    four_bit = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=nested, bnb_4bit_compute_dtype=torch.float32
    )
    base = AutoModelForCausalLM.from_pretrained(
        folder, quantization_config=four_bit, dtype=torch.float32, device_map="cpu", attn_implementation="eager"
    )
    linears = [module for module in base.modules() if isinstance(module, bitsandbytes.nn.Linear4bit)]
    model = peft.PeftModel.from_pretrained(base, GOLDEN / "lora" / name)
    # The packed layout of generation on CPUs takes only matrices of some sizes.
    for module in linears:
        module.train()
    ids = torch.tensor([[(i * 37 + 5) % model.config.vocab_size for i in range(24)]])
    with torch.no_grad():
        log_p = torch.log_softmax(model(ids).logits[0].float(), -1)
    log_probs = log_p[:-1].gather(1, ids[0, 1:, None])[1:, 0].tolist()
    cases[name] = {"double_quant": nested, "log_probs": log_probs}
    print(name, len(linears), "matrices")
cases["versions"] = {
    "bitsandbytes": bitsandbytes.__version__, "peft": peft.__version__, "torch": torch.__version__,
    "transformers": transformers.__version__,
}
(GOLDEN / "nf4/log-probs.json").write_text(json.dumps(cases, indent=1) + "\n")
