"""Writes tests/golden/validation.json: the results of verl's own code on random validation samples.

    pip download --no-deps verl==0.9.1   (and unpack the archive)
    pip install numpy
    python scripts/goldens/golden_validation.py VERL > tests/golden/validation.json

The argument is the folder that holds the package's folder. The functions are extracted from the files and run unchanged, except
for the number of random draws, which is DRAWS instead of 1,000. Our values have no sampling error, and a small one of verl's
makes a sharp test. The package is not imported, so nothing else is needed.
"""

import ast
import collections
import functools
import json
import pathlib
import sys
import types
import typing

import numpy as np

PPO = pathlib.Path(sys.argv[1]) / "verl/trainer/ppo"
DRAWS = 20_000
RANDOM = np.random.default_rng(20261122)


def functions(path, names, namespace):
    """The unchanged definitions of these names."""
    found = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef) and n.name in names]
    assert sorted(n.name for n in found) == sorted(names), (path, names)
    for node in (n for function in found for n in ast.walk(function) if isinstance(n, ast.Assign)):
        if getattr(node.targets[0], "id", None) == "n_bootstrap":
            node.value = ast.copy_location(ast.Constant(DRAWS), node.value)
    exec(compile(ast.Module(found, []), str(path), "exec"), namespace)
    return namespace


VERL = {"np": np, "defaultdict": collections.defaultdict, "partial": functools.partial, "Any": typing.Any,
        "Callable": typing.Callable}
functions(PPO / "metric_utils.py", ["bootstrap_metric", "calc_maj_val", "process_validation_metrics"], VERL)
functions(PPO / "ray_trainer.py", ["_val_metrics_update"], VERL)


def case(sources, n, variables, answers):
    """Samples of a few prompts per source; `answers`: the number of different answers, 0 for none."""
    rows = [(source, f"{source}-{prompt}") for source in sources for prompt in range(3) for _ in range(n)]
    infos = {}
    for name, kind in variables.items():
        draw = {"right or wrong": lambda: float(RANDOM.random() < 0.4), "any": lambda: round(float(RANDOM.normal()), 3)}[kind]
        infos[name] = [draw() for _ in rows]
    if answers:
        # Some answers are more probable than others.
        infos["pred"] = [chr(ord("a") + int(answers * RANDOM.random() ** 2)) for _ in rows]
    metrics = VERL["_val_metrics_update"](None, [source for source, _ in rows], [uid for _, uid in rows], infos, [])
    return {"n": n, "sources": [source for source, _ in rows], "prompts": [uid for _, uid in rows], "infos": infos,
            "metrics": {name: float(value) for name, value in metrics.items()}}


BOTH = {"reward": "any", "acc": "right or wrong"}
CASES = [
    case(["a"], 1, BOTH, 3),
    case(["a"], 4, {"reward": "right or wrong"}, 0),
    case(["a", "b/c"], 2, {**BOTH, "other": "any"}, 2),
    case(["a", "b/c"], 6, BOTH, 4),
    case(["a"], 16, {"reward": "any"}, 5),
    case(["a"], 8, BOTH, 12),
]
json.dump({"draws": DRAWS, "cases": CASES}, sys.stdout, indent=None, separators=(",", ":"))
print()
