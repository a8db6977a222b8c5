#!/usr/bin/env python3
"""Writes the results of TRL's and OpenRLHF's advantage code on random batches, as JSON.

    pip install torch
    python scripts/goldens/golden_advantages.py tests/golden/advantages-trl-openrlhf.json

The two wheels are downloaded from PyPI, without their dependencies. TRL computes advantages in the middle of a method: the
statements from the rewards to the advantages are cut out of its source and run. OpenRLHF's method runs whole; unrelated modules
that it imports (ray, deepspeed, ...) are replaced by empty ones.
"""

import ast
import importlib.machinery
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import zipfile
from types import SimpleNamespace
from unittest import mock

import torch

TRL, OPENRLHF = "1.16.0", "0.11.0"


def unpack(name, release, folder):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", folder]
    command += ["--python-version", "3.11", "--platform", "manylinux1_x86_64", f"{name}=={release}"]
    subprocess.run(command, check=True)
    wheel = next(pathlib.Path(folder).glob(f"{name}-{release}-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return next(path.parent for path in pathlib.Path(folder).rglob(name) if path.is_dir())


def listed(tensor):
    if tensor.dim() == 0:
        return None if tensor.isnan() else float(f"{tensor.item():.9g}")
    return [listed(row) for row in tensor]


# TRL


def statements(path, method, first, last):
    """The statements of `method` from the one that assigns `first` to the one that last assigns `last`."""
    tree = ast.parse(path.read_text())
    body = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == method).body
    names = [[t.id for t in s.targets if isinstance(t, ast.Name)] if isinstance(s, ast.Assign) else [] for s in body]
    start = next(i for i, assigned in enumerate(names) if first in assigned)
    called = [i for i, s in enumerate(body) if last in names[i] and "nan_to_num" in ast.unparse(s)]
    return compile(ast.Module(body[start : called[-1] + 1], []), str(path), "exec")


def trl(folder):
    source = unpack("trl", TRL, folder) / "trl/trainer"
    nanstd = next(n for n in ast.parse((source / "utils.py").read_text()).body if getattr(n, "name", "") == "nanstd")
    tools = {"torch": torch, "gather": lambda tensor: tensor}
    exec(compile(ast.Module([nanstd], []), "utils.py", "exec"), tools)
    method = "_generate_and_score_completions"
    grpo = statements(source / "grpo_trainer.py", method, "unscorable_mask", "advantages")
    rloo = statements(source / "rloo_trainer.py", method, "unscorable_mask", "advantages")

    def advantages(code, case, beta=0.0, **settings):
        rewards = case["rewards"].clone()
        weights = torch.tensor(case["weights"])
        trainer = SimpleNamespace(reward_weights=weights, reward_funcs=case["weights"], beta=beta, reward_clip_range=None,
                                  normalize_advantages=False, **settings)
        scope = dict(tools, self=trainer, rewards_per_func=rewards, num_generations=case["num_generations"], device="cpu",
                     old_per_token_logps=case["old_log_probs"], ref_per_token_logps=case["ref_log_probs"],
                     completion_mask=case["mask"])
        exec(code, scope)
        return listed(scope["advantages"])

    cases = []
    for prompts, n, functions, abstentions in [(4, 4, 2, ""), (3, 2, 3, ""), (2, 8, 1, ""), (4, 4, 2, "some"), (3, 3, 2, "alone")]:
        rewards = torch.randn(prompts * n, functions)
        rewards[:, 0] = rewards[:, 0].gt(0).float()
        rewards[:n] = rewards[0]
        if abstentions == "some":
            rewards[[1, 4, 9], 0] = torch.nan
            rewards[[4, 6, 11], 1] = torch.nan
            rewards[12:16, 0] = torch.nan
        if abstentions == "alone":
            rewards[[4, 5]] = torch.nan
        lengths = torch.randint(1, 6, (prompts * n, 1))
        case = {
            "num_generations": n, "weights": [1.0, 0.5, 2.0][:functions], "rewards": rewards,
            "mask": (torch.arange(5) < lengths).int(), "old_log_probs": -torch.rand(prompts * n, 5),
            "ref_log_probs": -torch.rand(prompts * n, 5),
        }
        results = {}
        for scale in ["group", "batch", "none"]:
            results[f"trl_grpo|scale_rewards={scale}"] = advantages(
                grpo, case, scale_rewards=scale, multi_objective_aggregation="sum_then_normalize")
        results["trl_gdpo"] = advantages(grpo, case, multi_objective_aggregation="normalize_then_sum")
        for beta in [0.0, 0.05]:
            results[f"rloo|beta={beta}"] = advantages(rloo, case, beta=beta)
        inputs = {key: listed(value) if torch.is_tensor(value) else value for key, value in case.items()}
        cases.append(inputs | {"abstentions": abstentions, "advantage": results})
    return cases


# OpenRLHF


class Absent:
    """Finds any module of the named packages, with every requested attribute."""

    packages = ("ray", "deepspeed", "transformers", "openrlhf.trainer.ray")

    def find_spec(self, name, path=None, target=None):
        if any(name == package or name.startswith(f"{package}.") for package in self.packages):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return mock.MagicMock(__path__=[], __spec__=spec)

    def exec_module(self, module):
        pass


def openrlhf(folder):
    source = unpack("openrlhf", OPENRLHF, folder)
    sys.meta_path.insert(0, Absent())
    # The packages themselves import everything at once.
    for name in ["openrlhf", "openrlhf.models", "openrlhf.trainer", "openrlhf.trainer.ppo_utils", "openrlhf.utils"]:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(source / name.replace(".", "/"))]
    from openrlhf.trainer.ppo_utils.experience import Experience
    from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker

    cases = []
    for prompts, n, width, gamma, kl_coef, size in [(4, 4, 7, 1.0, 0.0, 1.0), (3, 3, 6, 0.9, 0.05, 1.0), (2, 8, 9, 0.97, 0.3, 20.0)]:
        count = prompts * n
        lengths = torch.randint(1, width + 1, (count, 1))
        exists = torch.arange(width) < lengths
        # Tokens of tools: never the first.
        tools = (torch.rand(count, width) < 0.2) & (torch.arange(width) > 0)
        mask = exists & ~tools
        scores = torch.randn(count) * size
        kl = torch.randn(count, width) * 0.5
        results = {}
        for estimator in ["reinforce", "reinforce_baseline", "rloo", "group_norm", "dr_grpo"]:
            maker = object.__new__(RemoteExperienceMaker)
            maker.args = SimpleNamespace(
                algo=SimpleNamespace(advantage=SimpleNamespace(estimator=estimator, gamma=gamma, lambd=1.0, no_std_norm=False)),
                reward=SimpleNamespace(clip_range=(-10, 10)), rollout=SimpleNamespace(n_samples_per_prompt=n))
            maker.strategy = SimpleNamespace(args=maker.args)
            maker.advantage_estimator = estimator
            maker.kl_ctl = SimpleNamespace(value=kl_coef)
            # Two micro-batches, the second with the later samples.
            parts = [list(range(count // 2)), list(range(count // 2, count))]
            experiences = [
                Experience(index=part, rewards=scores[part].clone(), kl=kl[part], action_mask=mask[part], info={}) for part in parts]
            maker.compute_advantages_and_returns(experiences)
            glued = {key: torch.cat([getattr(e, key) for e in experiences]) * mask for key in ["advantages", "returns"]}
            results[estimator] = {key: listed(value) for key, value in glued.items()}
        cases.append({
            "num_generations": n, "gamma": gamma, "kl_coef": kl_coef, "attention_mask": listed(exists.int()),
            "response_mask": listed(mask.int()), "scores": listed(scores), "kl": listed(kl), "advantage": results})
    return cases


def main():
    torch.manual_seed(4)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        result = {"source": f"trl {TRL}, openrlhf {OPENRLHF}", "trl": trl(one), "openrlhf": openrlhf(other)}
    pathlib.Path(sys.argv[1]).write_text(json.dumps(result) + "\n")


main()
