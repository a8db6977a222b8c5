"""Writes tests/golden/optimizers.json: weights and states after each of several updates of torch, transformers and bitsandbytes.

    python scripts/goldens/golden_optimizers.py [--out tests/golden/optimizers.json]

torch 2.15.0, transformers 5.23.0 and bitsandbytes 0.50.2 were used, on a CPU. Weights and gradients are sines, which the test
computes again: the weight at place i of a parameter is sin(0.37 i + 0.5), its gradient at update t sin(0.71 i + 0.013 i² + 1.3 t)
/ 10, both computed in float64. torch's Muon iterates in bfloat16, whose rounding hides errors of an iteration in float32. So its
function runs here in float32, and the weights of torch's own bfloat16 are stored as `bfloat16`. bitsandbytes' moments are rounded
by its torch implementation of `quantize_blockwise`, which takes the nearest code; the C++ one looks codes up in a coarser table.
"""

import argparse
import inspect
import json
import pathlib

import bitsandbytes
import bitsandbytes.backends.cpu.ops as bnb_cpu
import bitsandbytes.functional
import torch
import torch.optim._muon as torch_muon
from transformers.optimization import Adafactor

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "tests/golden/optimizers.json")
args = parser.parse_args()
UPDATES = 5
LR = [0.01, 0.02, 0.015, 0.005, 0.01]


def weights_of(shape):
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return torch.sin(0.37 * i + 0.5).float().reshape(shape)


def gradient_of(shape, update):
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return (torch.sin(0.71 * i + 0.013 * i * i + 1.3 * update) / 10).float().reshape(shape)


def numbers(tensor, places=None):
    """Values of a flat tensor, at some positions, with the digits of float32."""
    values = tensor.flatten().float()
    return [float(f"{x:.9g}") for x in (values if places is None else values[places]).tolist()]


def nearest(values, code, absmax_out, out, blocksize):
    """bitsandbytes' own rounding in torch (backends/default/ops.py), in place of the one of its CPU library."""
    import bitsandbytes.backends.default.ops as default

    source = inspect.getsource(default).split('@register_kernel("bitsandbytes::quantize_blockwise", "default")\n')[1].split("\n@")[0]
    scope = {"torch": torch}
    exec(source.replace("def _(", "def rounded("), scope)
    codes, absmax = scope["rounded"](values, code, blocksize)
    out.copy_(codes)
    absmax_out.copy_(absmax)


bnb_cpu._quant_blockwise_fp32_direct = nearest
bfloat16 = torch_muon._zeropower_via_newtonschulz
scope = dict(vars(torch_muon))
exec(inspect.getsource(bfloat16).replace("torch.bfloat16", "torch.float32"), scope)
float32 = scope["_zeropower_via_newtonschulz"]


def run(make, shape):
    """Weights after each update, and the state after the last."""
    weight = torch.nn.Parameter(weights_of(shape))
    optimizer = make([weight])
    weights = []
    for update in range(UPDATES):
        for group in optimizer.param_groups:
            if group["lr"] is not None:
                group["lr"] = LR[update]
        weight.grad = gradient_of(shape, update + 1)
        optimizer.step()
        weights.append(weight.detach().clone())
    return weights, optimizer.state[weight]


SHAPES = [[1], [7], [3, 5], [5, 3], [1, 6], [4, 4]]
BETAS = dict(betas=(0.8, 0.95), eps=1e-6)
CASES = []
for decay in [0.0, 0.1]:
    CASES += [
        ("AdamW", {}, decay, torch.optim.AdamW, BETAS, SHAPES),
        ("Adam", {}, decay, torch.optim.Adam, BETAS, SHAPES),
        *(("SGD", options, decay, torch.optim.SGD, options, SHAPES) for options in [
            {}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.5, "dampening": 0.25}]),
        *(("Adafactor", options, decay, Adafactor, {"scale_parameter": False, "relative_step": False} | options, SHAPES) for options in [
            {}, {"beta1": 0.8}, {"scale_parameter": True}, {"clip_threshold": 0.3, "decay_rate": -0.5}, {"eps": [1e-4, 2.0], "scale_parameter": True},
            {"relative_step": True, "scale_parameter": True}, {"relative_step": True, "warmup_init": True}]),
        *(("Muon", options, decay, torch.optim.Muon, options, [shape for shape in SHAPES if len(shape) == 2]) for options in [
            {}, {"momentum": 0.5, "nesterov": False}, {"adjust_lr_fn": "match_rms_adamw"}, {"adjust_lr_fn": "spectral_unclamped", "ns_steps": 3},
            {"ns_coefficients": [2.0, -1.5, 0.5]}]),
        ("AdamW8bit", {}, decay, bitsandbytes.optim.AdamW8bit, BETAS, [[7], [3, 5], [65, 64], [4099]]),
    ]

out = []
for name, options, decay, cls, given, shapes in CASES:
    for shape in shapes:
        relative = options.get("relative_step", False)
        make = lambda parameters: cls(parameters, lr=None if relative else LR[0], weight_decay=decay, **given)
        torch_muon._zeropower_via_newtonschulz = float32
        weights, state = run(make, shape)
        size = weights[0].numel()
        # Large parameters are compared at some positions.
        places = None if size < 100 else list(range(0, size, 97))
        at = lambda tensor: numbers(tensor, places if tensor.numel() == size else None)
        case = {"optimizer": name, "options": options, "weight_decay": decay, "shape": shape, "places": places}
        if "betas" in given:
            case |= {"betas": given["betas"], "eps": given["eps"]}
        case["weights"] = [at(tensor) for tensor in weights]
        if name == "Muon":
            torch_muon._zeropower_via_newtonschulz = bfloat16
            case["bfloat16"] = at(run(make, shape)[0][-1])
        kept = {key: at(value) for key, value in state.items()
                if isinstance(value, torch.Tensor) and key not in ("step", "RMS", "qmap1", "qmap2")}
        if name == "AdamW8bit" and size < 4096:
            kept = {"exp_avg": kept["state1"], "exp_avg_sq": kept["state2"]}
        case["state"] = kept
        out.append(case)

maps = {str(signed).lower(): numbers(bitsandbytes.functional.create_dynamic_map(signed)) for signed in (True, False)}
lines = ",\n".join(json.dumps(case) for case in out)
args.out.write_text(f'{{"lr": {LR}, "dynamic_map": {json.dumps(maps)}, "cases": [\n{lines}\n]}}\n')
print(f"{args.out}: {len(out)} cases, {args.out.stat().st_size} bytes")
