"""Writes tests/golden/schedules.json: the learning-rate factors of verl, transformers and Megatron, step by step, over three
times the length of each schedule.

    python scripts/goldens/golden_schedules.py VERL_FOLDER MEGATRON_FOLDER [--out tests/golden/schedules.json]

VERL_FOLDER is an unpacked wheel or a clone of verl (0.9.1 was used), MEGATRON_FOLDER one of megatron-core (0.13.1). Of verl,
`_build_lr_scheduler` of its FSDP engine and the functions of `verl/utils/torch_functional.py` are run unchanged; of transformers (the
installed one, 5.23.0) the functions behind each name of its `SchedulerType`; of Megatron `OptimizerParamScheduler.get_lr`. torch
is not needed, because they only use its `LambdaLR`. The base rate is 1, so rates and factors are equal.
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
    """Source text of the functions and methods of a file with these names."""
    text = path.read_text()
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name in names]
    # The last function of a name counts, as in Python.
    assert {node.name for node in found} == set(names), f"{path} has {[node.name for node in found]} of {names}"
    return "\n\n".join(ast.unparse(node) for node in found)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("verl", type=pathlib.Path)
parser.add_argument("megatron", type=pathlib.Path)
parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "tests/golden/schedules.json")
args = parser.parse_args()

# `LambdaLR(optimizer, factor, last_epoch)`: the factor is all that is compared.
torch_functional = types.ModuleType("verl.utils.torch_functional")
torch_functional.__dict__.update(math=math, Optimizer=object, LambdaLR=lambda optimizer, factor, last_epoch: factor)
exec(functions(args.verl / "verl/utils/torch_functional.py",
               ["get_cosine_schedule_with_warmup", "get_constant_schedule_with_warmup", "get_wsd_schedule_with_warmup"]), torch_functional.__dict__)
for name in ("verl", "verl.utils"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["verl.utils.torch_functional"] = torch_functional
engine = {}
exec(functions(args.verl / "verl/workers/engine/fsdp/transformer_impl.py", ["_build_lr_scheduler"]), engine)


def factors(factor, total):
    """The factors of this many steps and twice as many beyond, to 14 digits."""
    return [round(factor(step), 14) for step in range(3 * total + 1)]


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
    cases.append({"source": "verl", **config, "factors": factors(factor, config["total_training_steps"])})



def case(source, name, total, warmup, factor, **settings):
    """Adds the factors of one schedule; `settings` are those that differ from their defaults here."""
    config = dict(zip(GRID, [name, total, warmup, 0.0, 0.0, 0.5])) | settings
    cases.append({"source": source, **config, "factors": factors(factor, total)})


# verl's cosine that counts from 1, and its wsd.
for total, warmup in [(1, 0), (10, 0), (10, 3), (10, 12)]:
    for floor in [0.0, 0.1]:
        factor = torch_functional.get_cosine_schedule_with_warmup(None, warmup, total, floor, zero_indexed_step=False)
        case("verl", "cosine", total, warmup, factor, min_lr_ratio=floor, zero_indexed_step=False)
for total, warmup, floor, cycles, stable in itertools.product([1, 7, 15], [0, 3, 9], [0.0, 0.1], [0.5, 1.5], [0.0, 0.5, 0.9, 1.0]):
    factor = torch_functional.get_wsd_schedule_with_warmup(None, warmup, total, floor, cycles, stable_ratio=stable)
    case("verl", "wsd", total, warmup, factor, min_lr_ratio=floor, num_cycles=cycles, stable_ratio=stable)

# transformers, by the names of SchedulerType.
transformers = pathlib.Path(importlib.util.find_spec("transformers").origin).parent
theirs = {"math": math}
exec(functions(transformers / "optimization.py", [
    "_get_constant_schedule_with_warmup_lr_lambda", "_get_linear_schedule_with_warmup_lr_lambda",
    "_get_cosine_schedule_with_warmup_lr_lambda", "_get_cosine_with_hard_restarts_schedule_with_warmup_lr_lambda",
    "_get_polynomial_decay_schedule_with_warmup_lr_lambda", "_get_inverse_sqrt_schedule_lr_lambda", "_get_wsd_scheduler_lambda",
    "_get_cosine_with_min_lr_schedule_with_warmup_lr_rate_lambda",
]), theirs)


def of(name, **options):
    return lambda step: theirs[name](step, **options)


LENGTHS = [(1, 0), (1, 1), (2, 1), (10, 0), (10, 3), (10, 12), (17, 5)]
for total, warmup in LENGTHS:
    steps = dict(num_warmup_steps=warmup, num_training_steps=total)
    case("transformers", "constant_with_warmup", total, warmup,
         of("_get_constant_schedule_with_warmup_lr_lambda", num_warmup_steps=warmup))
    case("transformers", "linear", total, warmup, of("_get_linear_schedule_with_warmup_lr_lambda", **steps))
    for cycles in [0.5, 1.5]:
        case("transformers", "cosine", total, warmup, num_cycles=cycles,
             factor=of("_get_cosine_schedule_with_warmup_lr_lambda", **steps, num_cycles=cycles))
    for floor in [0.0, 0.1]:
        case("transformers", "cosine_with_min_lr", total, warmup, min_lr=floor,
             factor=of("_get_cosine_schedule_with_warmup_lr_lambda", **steps, num_cycles=0.5, min_lr_rate=floor))
        case("transformers", "cosine_with_min_lr", total, warmup, min_lr=floor, zero_indexed_step=False,
             factor=of("_get_cosine_with_min_lr_schedule_with_warmup_lr_rate_lambda", **steps, num_cycles=0.5, min_lr_rate=floor))
    for cycles in [1, 2, 3]:
        case("transformers", "cosine_with_restarts", total, warmup, num_cycles=cycles,
             factor=of("_get_cosine_with_hard_restarts_schedule_with_warmup_lr_lambda", **steps, num_cycles=cycles))
    for power, end in itertools.product([0.5, 1.0, 2.0], [0.0, 1e-7, 0.25]):
        # Where the warm-up ends with the schedule, transformers divides by 0.
        if warmup != total:
            case("transformers", "polynomial", total, warmup, power=power, min_lr=end,
                 factor=of("_get_polynomial_decay_schedule_with_warmup_lr_lambda", **steps, lr_end=end, power=power, lr_init=1.0))
    for timescale in [None, 1, 100]:
        case("transformers", "inverse_sqrt", total, warmup, timescale=timescale,
             factor=of("_get_inverse_sqrt_schedule_lr_lambda", num_warmup_steps=warmup, timescale=timescale or warmup or 10_000))
    for decay, style, floor in itertools.product([1, 4, total], ["linear", "cosine", "1-sqrt"], [0.0, 0.1]):
        case("transformers", "warmup_stable_decay", total, warmup, lr_wsd_decay_steps=decay, lr_wsd_decay_style=style,
             min_lr_ratio=floor, lr_warmup_init=floor,
             factor=of("_get_wsd_scheduler_lambda", num_warmup_steps=warmup, num_stable_steps=total - warmup - decay,
                       num_decay_steps=decay, warmup_type="linear", decay_type=style, min_lr_ratio=floor, num_cycles=0.5))

# Megatron, which refuses a warm-up that is not shorter than the schedule, and whose warm-up includes the first step after it where a fall began
# before.
get_lr = {"math": math}
exec(functions(args.megatron / "megatron/core/optimizer_param_scheduler.py", ["get_lr"]), get_lr)
STYLES = [(style, None) for style in ["constant", "linear", "cosine", "inverse-square-root"]]
STYLES += [("WSD", style) for style in ["linear", "cosine", "exponential", "minus_sqrt"]]
for (total, warmup), floor, init, (style, fall) in itertools.product(
        [(1, 0), (10, 0), (10, 3), (17, 5)], [0.0, 0.1], [0.0, 0.05], STYLES):
    for decay in [4, total - warmup] if fall else [None]:
        settings = {"lr_wsd_decay_steps": decay, "lr_wsd_decay_style": fall} if fall else {}
        scheduler = dict(max_lr=1.0, min_lr=floor, init_lr=init, lr_warmup_steps=warmup, lr_decay_steps=total, lr_decay_style=style,
                         wsd_decay_steps=decay, lr_wsd_decay_style=fall)
        factor = lambda step: get_lr["get_lr"](types.SimpleNamespace(**scheduler, num_steps=step), {})
        case("megatron", style, total, warmup, factor, min_lr=floor, lr_warmup_init=init, **settings)

args.out.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
print(f"{args.out}: {len(cases)} schedules")
