"""Losses of routers, as transformers computes them: tests/golden/models-2026/FAMILY/routers.json.

    python scripts/goldens/golden_routers.py tests/golden/models-2026/qwen3_moe …

For the sequences of golden.json without their last token, which predicts nothing: the load-balancing loss of
`load_balancing_loss_func` over all rows of all layers, the mean of log²Σ exp(logits), and the norm of every gradient of
NLL + 0.3 · the first + 0.05 · the second.
"""

import importlib
import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

AUX, Z = 0.3, 0.05


def golden(folder: Path) -> dict:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    module = importlib.import_module(type(model).__module__)
    seqs = json.loads((folder / "golden.json").read_text())["seqs"]
    nll, logits = 0.0, None
    for seq in seqs:
        inputs, targets = torch.tensor([seq[:-1]]), torch.tensor(seq[1:])
        out = model(inputs, output_router_logits=True, use_cache=False)
        nll = nll + torch.nn.functional.cross_entropy(out.logits[0], targets, reduction="sum")
        of_seq = [layer.reshape(-1, layer.shape[-1]) for layer in out.router_logits]
        logits = of_seq if logits is None else [torch.cat(pair) for pair in zip(logits, of_seq)]
    nll = nll / sum(len(seq) - 1 for seq in seqs)
    experts, top_k = logits[0].shape[-1], model.config.num_experts_per_tok
    aux = module.load_balancing_loss_func(tuple(logits), experts, top_k)
    z = torch.cat([layer.logsumexp(-1).square() for layer in logits]).mean()
    (nll + AUX * aux + Z * z).backward()
    norms = {name: weight.grad.norm().item() for name, weight in model.named_parameters() if weight.grad is not None}
    coefs = {"router_aux_loss_coef": AUX, "router_z_loss_coef": Z, "output_router_logits": True}
    return {"config": coefs, "nll": nll.item(), "aux_loss": aux.item(), "z_loss": z.item(), "grad_norms": norms}


for folder in map(Path, sys.argv[1:]):
    values = golden(folder)
    (folder / "routers.json").write_text(json.dumps(values, indent=1) + "\n")
    print(folder.name, values["nll"], values["aux_loss"], values["z_loss"])
