"""Writes tests/golden/schedules.json: the learning-rate factors that verl's own code gives, step by step, over three times the length
of each schedule.

    python scripts/goldens/golden_schedules.py VERL_FOLDER [--out tests/golden/schedules.json]

VERL_FOLDER is an unpacked wheel or a clone of verl (0.9.1 was used). `_build_lr_scheduler` of its FSDP engine is run unchanged, with the
functions of `verl/utils/torch_functional.py` that it calls; torch is not needed, as all they want of it is `LambdaLR`. `linear`, which verl
leaves to Megatron and torchtitan, is that of the installed transformers, with its own count of warm-up steps.
"""

import argparse
import ast
import importlib.util
import itertools
import json
import math
import pathlib
import sys
import types


def functions(path, names):
    """Source text of the functions of a file that have these names, methods among them."""
    text = path.read_text()
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name in names]
    assert len(found) == len(names), f"{path} has {[node.name for node in found]} of {names}"
    return "\n\n".join(ast.unparse(node) for node in found)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("verl", type=pathlib.Path)
parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "tests/golden/schedules.json")
args = parser.parse_args()

# `LambdaLR(optimizer, factor, last_epoch)`: the factor is all that is compared.
torch_functional = types.ModuleType("verl.utils.torch_functional")
torch_functional.__dict__.update(math=math, Optimizer=object, LambdaLR=lambda optimizer, factor, last_epoch: factor)
exec(functions(args.verl / "verl/utils/torch_functional.py",
               ["get_cosine_schedule_with_warmup", "get_constant_schedule_with_warmup"]), torch_functional.__dict__)
for name in ("verl", "verl.utils"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["verl.utils.torch_functional"] = torch_functional
engine = {}
exec(functions(args.verl / "verl/workers/engine/fsdp/transformer_impl.py", ["_build_lr_scheduler"]), engine)

GRID = {
    "lr_scheduler_type": ["constant", "cosine"],
    "total_training_steps": [1, 10],
    "lr_warmup_steps": [-1, 0, 3, 12],
    "lr_warmup_steps_ratio": [0.0, 0.29, 1.0],
    "min_lr_ratio": [0.0, 0.1, 1.0],
    "num_cycles": [0.5, 0.25, 1.5],
}
cases = []
for values in itertools.product(*GRID.values()):
    config = dict(zip(GRID, values))
    if config["lr_scheduler_type"] == "constant" and (config["min_lr_ratio"], config["num_cycles"]) != (0.0, 0.5):
        continue
    if config["lr_warmup_steps"] > 0 and config["lr_warmup_steps_ratio"] != 0.29:
        continue
    settings = types.SimpleNamespace(**config, zero_indexed_step=True)
    factor = engine["_build_lr_scheduler"](types.SimpleNamespace(optimizer_config=settings, rank=1), None)
    cases.append({**config, "factors": [factor(step) for step in range(3 * config["total_training_steps"] + 1)]})

transformers = pathlib.Path(importlib.util.find_spec("transformers").origin).parent
linear = {}
exec(functions(transformers / "optimization.py", ["_get_linear_schedule_with_warmup_lr_lambda"]), linear)
# Megatron refuses a warm-up that is longer than the schedule.
for total, warmup in [(1, 0), (10, 0), (10, 3)]:
    config = dict(zip(GRID, ["linear", total, warmup, 0.0, 0.0, 0.5]))
    factor = lambda step: linear["_get_linear_schedule_with_warmup_lr_lambda"](step, num_warmup_steps=warmup, num_training_steps=total)
    cases.append({**config, "factors": [factor(step) for step in range(3 * total + 1)]})

args.out.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
print(f"{args.out}: {len(cases)} schedules")
