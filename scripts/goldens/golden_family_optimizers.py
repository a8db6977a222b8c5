"""Writes tests/golden/family-optimizers.json: the move of the parameters of each golden model by three updates of torch's Muon, transformers'
Adafactor and bitsandbytes' AdamW8bit.

    python scripts/goldens/golden_family_optimizers.py [--out tests/golden/family-optimizers.json]

torch 2.15.0, transformers 5.24.0 and bitsandbytes 0.50.2 were used, on a CPU. The loss is the mean over all predicted tokens of the model's `seqs`. As
in golden_optimizers.py, torch's Muon iterates in float32; it updates the matrices of the blocks, and torch's AdamW all else.
"""

import argparse
import inspect
import json
import pathlib
import sys

import torch
import torch.optim._muon as torch_muon
from transformers import AutoModelForCausalLM
from transformers.optimization import Adafactor

try:
    import bitsandbytes
    import bitsandbytes.backends.cpu.ops as bnb_cpu
except ImportError as error:
    sys.exit(f"bitsandbytes cannot be imported ({error}), and the file needs its AdamW8bit: pip install bitsandbytes==0.50.2")

ROOT = pathlib.Path(__file__).parents[2] / "tests/golden"
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--out", type=pathlib.Path, default=ROOT / "family-optimizers.json")
args = parser.parse_args()
LR, DECAY, UPDATES = 1e-3, 0.1, 3

scope = dict(vars(torch_muon))
exec(inspect.getsource(torch_muon._zeropower_via_newtonschulz).replace("torch.bfloat16", "torch.float32"), scope)
torch_muon._zeropower_via_newtonschulz = scope["_zeropower_via_newtonschulz"]


def nearest(values, code, absmax_out, out, blocksize):
    """bitsandbytes' own rounding in torch, in place of the one of its CPU library (golden_optimizers.py)."""
    import bitsandbytes.backends.default.ops as default

    source = inspect.getsource(default).split('@register_kernel("bitsandbytes::quantize_blockwise", "default")\n')[1].split("\n@")[0]
    scope = {"torch": torch}
    exec(source.replace("def _(", "def rounded("), scope)
    codes, absmax = scope["rounded"](values, code, blocksize)
    out.copy_(codes)
    absmax_out.copy_(absmax)


def muon(model):
    is_block = lambda name, w: w.ndim == 2 and (".layers." in name or ".h." in name)
    blocks = [w for name, w in model.named_parameters() if is_block(name, w)]
    others = [w for name, w in model.named_parameters() if not is_block(name, w)]
    return [torch.optim.Muon(blocks, lr=LR, weight_decay=DECAY), torch.optim.AdamW(others, lr=LR, weight_decay=DECAY)]


def adafactor(model):
    return [Adafactor(model.parameters(), lr=LR, weight_decay=DECAY, scale_parameter=False, relative_step=False)]


def adamw8bit(model):
    return [bitsandbytes.optim.AdamW8bit(model.parameters(), lr=LR, weight_decay=DECAY)]


bnb_cpu._quant_blockwise_fp32_direct = nearest
OPTIMIZERS = {"Muon": muon, "Adafactor": adafactor, "AdamW8bit": adamw8bit}

cases = []
for folder in sorted((ROOT / "models").iterdir()) + sorted((ROOT / "models-2026").iterdir()):
    golden = json.loads((folder / "golden.json").read_text())
    if "sequences" not in golden:
        continue
    if folder.name == "gemma4_text":
        continue  # Its attention has scores up to 90: torch with the terms of linear layers in another order moves it 2.7% further.
    for name, make in OPTIMIZERS.items():
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        before = {key: w.detach().clone() for key, w in model.named_parameters()}
        optimizers = make(model)
        for _ in range(UPDATES):
            nll = [torch.nn.functional.cross_entropy(model(torch.tensor([seq])).logits[0, :-1].float(), torch.tensor(seq[1:]), reduction="sum")
                   for seq in golden["seqs"]]
            loss = sum(nll) / sum(len(seq) - 1 for seq in golden["seqs"])
            model.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
        moves = {}
        for key, w in model.named_parameters():
            if folder.parent.name == "models-2026" and ".layers." in key and ".layers.0." not in key:
                continue  # The models of 2026 have four layers; one keeps the file small.
            if key.endswith(("A_log", "dt_bias")):
                continue  # In float32, torch's gradients of these gates have too few digits for Adam's division.
            move = (w.detach() - before[key]).double().flatten()
            probes = [move[int(i)].item() for i in torch.linspace(0, len(move) - 1, 5)]
            moves[key] = [float(f"{x:.5g}") for x in [move.norm().item(), *probes]]
        cases.append({"model": folder.name, "optimizer": name, "moves": moves})
        print(folder.name, name, loss.item())

lines = ",\n".join(json.dumps(case) for case in cases)
args.out.write_text(f'{{"lr": {LR}, "weight_decay": {DECAY}, "updates": {UPDATES}, "cases": [\n{lines}\n]}}\n')
print(f"{args.out}: {len(cases)} cases, {args.out.stat().st_size} bytes")
