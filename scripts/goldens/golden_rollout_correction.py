#!/usr/bin/env python3
"""Writes tests/golden/rollout-correction.json: the results of verl's, OpenRLHF's and TRL's own code on a few small batches.

    pip install torch numpy tensordict==0.15.3 omegaconf packaging
    for p in verl==0.9.1 verl==0.7.0 openrlhf==0.11.0 trl==1.16.0; do pip install --no-deps --target packages/$p $p; done
    python scripts/goldens/golden_rollout_correction.py packages > tests/golden/rollout-correction.json

Unused modules that these packages import are replaced by empty ones, so nothing else is needed.
"""

import ast
import importlib.abc
import importlib.machinery
import itertools
import json
import math
import subprocess
import sys
import types
from pathlib import Path

import torch

UNUSED = {"codetiming", "deepspeed", "flash_attn", "orjson", "peft", "pylatexenc", "ray", "transformers"}


class Empty(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Unused(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in UNUSED else None

    def create_module(self, spec):
        return Empty(spec.name)

    def exec_module(self, module):
        pass


# The batches: ragged rows with a mask, tool tokens among them.


def batches():
    generator = torch.Generator().manual_seed(20261122)

    def rows(lengths, centre, spread):
        return [(centre + spread * torch.randn(n, generator=generator)).tolist() for n in lengths]

    def batch(lengths, masked, off, drift):
        rollout = rows(lengths, -1.3, 0.5)
        old = [[p + d for p, d in zip(*pair)] for pair in zip(rollout, rows(lengths, 0.0, off))]
        log_prob = [[p + d for p, d in zip(*pair)] for pair in zip(old, rows(lengths, 0.0, drift))]
        mask = [[0.0 if (i, t) in masked else 1.0 for t in range(n)] for i, n in enumerate(lengths)]
        columns = {"mask": mask, "rollout_log_prob": rollout, "old_log_prob": old, "log_prob": log_prob}
        columns["advantages"] = rows(lengths, 0.0, 1.0)
        return {name: [[round(v, 5) for v in row] for row in column] for name, column in columns.items()}

    return [
        batch([3, 6, 1, 8, 5, 4], {(1, 2), (1, 3), (3, 0)}, 0.15, 0.1),
        batch([5, 2, 7, 4, 6, 3, 1], {(2, 6), (4, 1)}, 0.4, 0.25),
        batch([1], set(), 0.05, 0.05),
    ]


def padded(batch):
    width = max(len(row) for row in batch["mask"])
    return {name: torch.tensor([row + [0.0] * (width - len(row)) for row in column]) for name, column in batch.items()}


def ragged(batch, tensor):
    """The positions of the rows, one after another."""
    rows = zip(tensor.tolist(), batch["mask"])
    return [float(f"{v:.9g}") for row, exists in rows for v in row[: len(exists)]]


# verl 0.9.1: combinations beyond those in algorithms.json, and the loss of bypass mode.

EVERY_CRITERION = {
    "token_k1": "0.6_1.5",
    "token_k2": "0.3",
    "token_k3": "0.2",
    "seq_sum_k1": "0.3_2.5",
    "seq_sum_k2": "0.6",
    "seq_sum_k3": "0.7",
    "seq_mean_k1": "0.8_1.2",
    "seq_mean_k2": "0.1",
    "seq_mean_k3": "0.12",
    "seq_max_k2": "0.25",
    "seq_max_k3": "0.3",
}
CORRECTIONS = [
    *({"rollout_rs": name, "rollout_rs_threshold": threshold} for name, threshold in EVERY_CRITERION.items()),
    {"rollout_rs": ",".join(EVERY_CRITERION), "rollout_rs_threshold": ",".join(EVERY_CRITERION.values())},
    {"rollout_is": "token", "rollout_rs": "token_k1,seq_mean_k3", "rollout_rs_threshold": "0.7_1.5,0.1"},
    {"rollout_is": "sequence", "rollout_is_threshold": 1.5, "rollout_is_batch_normalize": True},
    {"rollout_is": "token", "rollout_is_threshold": "0.8_1.3", "rollout_is_batch_normalize": True},
    {"rollout_is": "sequence", "rollout_is_threshold": "0.5_2.5", "rollout_is_batch_normalize": True},
    {"rollout_is": "sequence", "rollout_is_threshold": "3", "rollout_rs": "token_k1,seq_sum_k1", "rollout_rs_threshold": 1.4},
    {"rollout_is": "token", "rollout_rs": "token_k3,token_k3,token_k2", "rollout_rs_threshold": "0.05, 0.1"},
]
BYPASS = [
    {},
    {"rollout_is": "token", "rollout_is_threshold": 1.2},
    {"rollout_is": "sequence", "rollout_is_batch_normalize": True, "rollout_rs": "token_k2", "rollout_rs_threshold": 0.08},
    {"rollout_is": "token", "rollout_is_threshold": "0.8_1.3", "rollout_rs": "seq_mean_k1", "rollout_rs_threshold": "0.8_1.3"},
]


def verl(batch, settings):
    from verl.trainer.ppo import rollout_corr_helper as helper

    x = padded(batch)
    weights, mask, metrics = helper.compute_rollout_correction_and_rejection_mask(
        old_log_prob=x["old_log_prob"], rollout_log_prob=x["rollout_log_prob"], response_mask=x["mask"], **settings
    )
    weights = ragged(batch, weights.batch["rollout_is_weights"]) if weights else None
    return {"settings": settings, "weights": weights, "mask": ragged(batch, mask), "metrics": metrics}


def bypass(batch, settings, loss_type, aggregation):
    from omegaconf import OmegaConf
    from verl.trainer.ppo import core_algos

    x = padded(batch)
    counts = {"dp_size": 1, "batch_num_tokens": int(x["mask"].sum()), "global_batch_size": len(batch["mask"])}
    config = {
        "policy_loss": {"rollout_correction": {"loss_type": loss_type, **settings}},
        "clip_ratio": 0.2,
        "clip_ratio_low": 0.2,
        "clip_ratio_high": 0.28,
        "clip_ratio_c": 3.0,
        "global_batch_info": counts,
    }
    log_prob = x["log_prob"].requires_grad_()
    loss, metrics = core_algos.compute_policy_loss_bypass_mode(
        old_log_prob=x["rollout_log_prob"],
        log_prob=log_prob,
        advantages=x["advantages"],
        response_mask=x["mask"],
        loss_agg_mode=aggregation,
        config=OmegaConf.create(config),
    )
    loss.backward()
    result = {"loss": loss.item(), "gradient": ragged(batch, log_prob.grad), "metrics": metrics}
    return {"settings": settings, "loss_type": loss_type, "aggregation": aggregation, **result}


def verl_0_9_1(_):
    product = itertools.product(BYPASS, ["ppo_clip", "reinforce"], ["token-mean", "seq-mean-token-sum"])
    products = list(product)
    return [
        {
            "corrections": [verl(batch, settings) for settings in CORRECTIONS],
            "bypass_mode": [bypass(batch, *choice) for choice in products],
        }
        for batch in batches()
    ]


# verl 0.7.0: the older criteria, whose metrics have other names, and the veto.

OLDER = [
    {"rollout_rs": "token", "rollout_rs_threshold": 1.5, "rollout_rs_threshold_lower": 0.9},
    {"rollout_rs": "sequence", "rollout_rs_threshold": 1.3, "rollout_rs_threshold_lower": 0.4},
    {"rollout_rs": "geometric", "rollout_rs_threshold": 1.1},
    {"rollout_is": "token", "rollout_token_veto_threshold": 0.75},
    {"rollout_rs": "token", "rollout_rs_threshold": 1.2, "rollout_token_veto_threshold": 0.6},
]


def verl_0_7_0(_):
    def of(batch, settings):
        result = verl(batch, settings)
        kept = ("rollout_corr/rollout_is_veto_fraction", "rollout_corr/rollout_is_catastrophic_token_fraction")
        vetoed = "rollout_token_veto_threshold" in settings
        return {**result, "metrics": {name: result["metrics"][name] for name in kept if vetoed}}

    return [{"corrections_0_7": [of(batch, settings) for settings in OLDER]} for batch in batches()]


# OpenRLHF: the weight of a token is its part of the gradient if the policy equals the old one and the advantage is 1.


def openrlhf(_):
    from openrlhf.models.loss import PolicyLoss

    def of(batch, kind, bounds):
        x = padded(batch)
        loss = PolicyLoss(enable_vllm_is_correction=True, vllm_is_truncated_threshold=bounds, vllm_is_correction_type=kind)
        log_prob = x["old_log_prob"].clone().requires_grad_()
        advantages = torch.ones_like(log_prob)
        value = loss(log_prob, x["old_log_prob"], advantages, x["mask"], x["rollout_log_prob"], batch_num_tokens=1.0)[0]
        value.backward()
        return {"type": kind, "bounds": bounds, "weights": ragged(batch, -log_prob.grad)}

    kinds, bounds = ["tis", "icepop", "seq-mask-tis"], [[0.5, 5.0], [0.7, 1.2], [0.9, 2.0]]
    return [{"openrlhf": [of(batch, *pair) for pair in itertools.product(kinds, bounds)]} for batch in batches()]


# TRL: the block of its trainer that computes the ratio, run by itself.


def trl(package):
    tree = ast.parse((package / "trl/trainer/grpo_trainer.py").read_text())
    blocks = (node for node in ast.walk(tree) if isinstance(node, ast.If))
    block = next(
        b for b in blocks
        if ast.unparse(b.test).endswith("self.vllm_importance_sampling_correction")
        and any("per_token_logps_diff" in ast.unparse(statement) for statement in b.body)
    )
    code = compile(ast.Module(body=block.body, type_ignores=[]), "grpo_trainer.py", "exec")

    def of(batch, mode, low, high):
        x = padded(batch)
        trainer = types.SimpleNamespace(vllm_importance_sampling_mode=mode)
        trainer.vllm_importance_sampling_clip_min, trainer.vllm_importance_sampling_clip_max = low, high
        names = {"self": trainer, "torch": torch, "math": math, "tool_mask": None, "completion_mask": x["mask"]}
        names |= {"old_per_token_logps": x["old_log_prob"], "sampling_per_token_logps": x["rollout_log_prob"]}
        exec(code, names)
        weights = names["vllm_importance_sampling_ratio"] * x["mask"]
        return {"mode": mode, "low": low, "high": high, "weights": ragged(batch, weights)}

    modes = ["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
    bounds = [(None, 3.0), (None, 1.1), (0.6, 1.4)]
    return [{"trl": [of(batch, mode, *pair) for mode, pair in itertools.product(modes, bounds)]} for batch in batches()]


PACKAGES = {"verl==0.9.1": verl_0_9_1, "verl==0.7.0": verl_0_7_0, "openrlhf==0.11.0": openrlhf, "trl==1.16.0": trl}


def main():
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        package = folder / sys.argv[2]
        sys.meta_path.insert(0, Unused())
        sys.path.insert(0, str(package))
        print(json.dumps(PACKAGES[sys.argv[2]](package)))
        return
    cases = [dict(batch) for batch in batches()]
    for package in PACKAGES:
        # Two releases of one package cannot be imported together.
        output = subprocess.run([sys.executable, __file__, folder, package], stdout=subprocess.PIPE, text=True, check=True).stdout
        for case, results in zip(cases, json.loads(output.splitlines()[-1])):
            case.update(results)
    print(json.dumps({"source": ", ".join(PACKAGES) + "; torch on the CPU, float32", "cases": cases}, separators=(",", ":")))


main()
