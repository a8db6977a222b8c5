"""Writes tests/golden/aggregations.json: verl's and TRL's aggregations of token losses with fully masked responses.

    pip download --no-deps verl==0.9.1 trl==1.16.0   (one by one; unpack each archive)
    pip install numpy
    python scripts/goldens/golden_aggregations.py VERL TRL > tests/golden/aggregations.json

Each argument is the folder that contains the package's folder. verl's `agg_loss` and TRL's choice by `loss_type` are extracted
from the files and run unchanged, with the counts of the trainers (verl: `ppo_loss` with those of the mini-batch, on one device).
Their few torch operations are numpy's here, in float64, so neither torch nor the packages are needed.
"""

import ast
import json
import pathlib
import sys
import types
import typing

import numpy as np

VERL, TRL = (pathlib.Path(argument) for argument in sys.argv[1:3])
RANDOM = np.random.default_rng(20261122)
SCALE = 11


class Tensor(np.ndarray):
    """A numpy array with torch's method names."""

    def size(self, dim):
        return self.shape[dim]

    def float(self):
        return self.astype(np.float64)

    def bool(self):
        return self.astype(np.bool_)

    def detach(self):
        return self

    def clamp(self, min):
        return np.maximum(self, min).view(Tensor)

    def sum(self, *dims, **axis):
        return np.asarray(super().sum(*dims, **axis)).view(Tensor)


def tensor(values):
    return np.asarray(values, dtype=np.float64).view(Tensor)


torch = types.SimpleNamespace(
    Tensor=Tensor,
    sum=lambda x, dim: x.sum(axis=dim),
    where=lambda condition, x, y: np.where(condition, x, y).view(Tensor),
)


def definition(path, name, **namespace):
    """The unchanged function of this name."""
    node = next(n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef) and n.name == name)
    exec(compile(ast.Module([node], []), str(path), "exec"), namespace)
    return namespace[name]


masked_sum = definition(VERL / "verl/utils/torch_functional.py", "masked_sum", torch=torch)
agg_loss = definition(VERL / "verl/trainer/ppo/core_algos.py", "agg_loss", torch=torch, Optional=typing.Optional,
                      verl_F=types.SimpleNamespace(masked_sum=masked_sum))


def verl(loss, mask, mode, scale):
    """Calls it like `ppo_loss` of verl/workers/utils/losses.py, with one device and the mini-batch in one piece."""
    counts = {"dp_size": 1, "batch_num_tokens": mask.sum(), "global_batch_size": len(mask), "loss_scale_factor": scale}
    return agg_loss(loss, mask, mode, **counts)


def trl(loss, mask, loss_type):
    """The chain of conditions in GRPOTrainer._compute_loss that reduces `per_token_loss` to one value."""
    path = TRL / "trl/trainer/grpo_trainer.py"
    method = next(n for n in ast.walk(ast.parse(path.read_text())) if getattr(n, "name", None) == "_compute_loss")
    chain = next(n for n in ast.walk(method) if isinstance(n, ast.If) and ast.unparse(n.test).startswith("self.loss_type")
                 and any(ast.unparse(statement).startswith("normalizer = ") for statement in n.body))
    space = {
        "self": types.SimpleNamespace(
            loss_type=loss_type, max_completion_length=SCALE, current_gradient_accumulation_steps=1,
            accelerator=types.SimpleNamespace(num_processes=1), args=types.SimpleNamespace(steps_per_generation=1)),
        "mode": "train", "per_token_loss": loss, "mask": mask, "inputs": {"num_items_in_batch": mask.sum()},
    }
    exec(compile(ast.Module([chain], []), str(path), "exec"), space)
    return space["loss"]


# Name, the reference, and our aggregation and loss_scale_factor that must give the same value.
MODES = ["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]
REFERENCES = [
    *[(f"verl {mode}", lambda x, m, mode=mode: verl(x, m, mode, None), mode, None) for mode in MODES],
    ("verl with a scale", lambda x, m: verl(x, m, "seq-mean-token-sum-norm", SCALE), "seq-mean-token-sum-norm", SCALE),
    ("TRL grpo", lambda x, m: trl(x, m, "grpo"), "seq-mean-token-mean", None),
    ("TRL bnpo", lambda x, m: trl(x, m, "bnpo"), "token-mean", None),
    ("TRL dapo", lambda x, m: trl(x, m, "dapo"), "token-mean", None),
    ("TRL dr_grpo", lambda x, m: trl(x, m, "dr_grpo"), "seq-mean-token-sum-norm", SCALE),
    ("TRL luspo", lambda x, m: trl(x, m, "luspo"), "seq-mean-token-sum", None),
]


def main():
    cases = []
    for rows, width, empty in [(4, 3, [1, 3]), (6, 5, [0]), (5, 4, []), (7, 6, [0, 1, 2, 4, 5, 6])]:
        mask = RANDOM.random((rows, width)) < 0.8
        mask[:, 0] = True
        mask[empty] = False
        mask, loss = tensor(mask), tensor(RANDOM.normal(size=(rows, width)))
        results = {
            name: {"loss_agg_mode": mode, "loss_scale_factor": scale, "loss": float(reference(loss, mask))}
            for name, reference, mode, scale in REFERENCES
        }
        cases.append({"response_mask": mask.tolist(), "per_token_loss": loss.tolist(), "results": results})
    source = "verl 0.9.1 agg_loss as ppo_loss calls it, trl 1.16.0 GRPOTrainer._compute_loss; numpy float64"
    json.dump({"source": source, "cases": cases}, sys.stdout, separators=(",", ":"))
    print()


main()
