"""Write losses-trl-openrlhf.json: the losses and gradients that the trainers of TRL, the PolicyLoss of OpenRLHF and the
clip_cov of verl return on random numbers, in the layout that tests/golden_algorithms reads.

    pip install torch trl==1.16.0 verl==0.9.1 orjson tensordict; pip install --no-deps openrlhf==0.11.0
    python scripts/goldens/golden_losses.py tests/golden/losses-trl-openrlhf.json

The methods are the real ones. The trainer is a stub whose "model" returns given log-probabilities, so that the gradient is
theirs. Each result names our loss, aggregation and settings that must give the same values.
"""
import importlib.util
import json
import math
import sys
import types
from collections import defaultdict
from types import SimpleNamespace

import torch
from accelerate import Accelerator
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.rloo_trainer import RLOOTrainer

LOW, HIGH = 0.2, 0.28


def openrlhf_loss():
    """openrlhf.models.loss without its package, which requires deepspeed, vLLM and CUDA."""
    sys.modules.setdefault("deepspeed", types.ModuleType("deepspeed"))
    root = importlib.util.find_spec("openrlhf").submodule_search_locations[0]
    package = types.ModuleType("openrlhf.models")
    package.__path__ = [f"{root}/models"]
    sys.modules["openrlhf.models"] = package
    return importlib.import_module("openrlhf.models.loss").PolicyLoss


def case(seed, rows, width, spread, empty_row):
    """Random columns on a coarse grid, so that they are the same in JSON and in float32, and entropies tie."""
    g = torch.Generator().manual_seed(seed)
    grid = lambda x, steps: (x * steps).round() / steps
    lengths = torch.randint(1, width + 1, (rows, 1), generator=g)
    lengths[0], lengths[1] = width, 1
    exists = (torch.arange(width)[None] < lengths).float()
    tool = torch.rand(rows, width, generator=g) < 0.2
    tool[:, 0] = False
    mask = exists * ~tool
    if empty_row:
        mask[2] = 0
    old = grid(-3 * torch.rand(rows, width, generator=g) - 0.05, 256)
    columns = {
        "attention_mask": exists,
        "response_mask": mask,
        "old_log_probs": old,
        "log_probs": grid((old + spread * torch.randn(rows, width, generator=g)).clamp(max=-0.01), 256),
        "ref_log_probs": grid(old + 0.3 * torch.randn(rows, width, generator=g), 256),
        "entropies": grid(3 * torch.rand(rows, width, generator=g), 8),
        "rollout_is_weights": grid(0.5 + torch.rand(rows, width, generator=g), 64),
        "advantages_in": grid(torch.randn(rows, 1, generator=g), 256).expand(rows, width) * mask,
    }
    return columns


def trainer(log_prob, x, **settings):
    """All attributes that _compute_loss of a trainer reads, except its methods."""
    args = SimpleNamespace(delta=None, steps_per_generation=1, use_bias_correction_kl=False, sapo_temperature_pos=1.0,
                           sapo_temperature_neg=1.05, vespo_k_pos=2.0, vespo_lambda_pos=3.0, vespo_k_neg=3.0,
                           vespo_lambda_neg=2.0)
    self = SimpleNamespace(args=args, accelerator=Accelerator(cpu=True), model=SimpleNamespace(training=True),
                           _metrics={"train": defaultdict(list)}, epsilon_low=LOW, epsilon_high=HIGH, beta=0.0,
                           importance_sampling_level="token", top_entropy_quantile=1.0, off_policy_mask_threshold=None,
                           use_vllm=False, vllm_importance_sampling_correction=False, aux_loss_enabled=False,
                           current_gradient_accumulation_steps=1, max_completion_length=11, _entropy_bonus_enabled=False)
    self._get_per_token_logps_and_entropies = lambda *a, **k: (log_prob, x["entropies"], None)
    self.get_high_entropy_mask = types.MethodType(GRPOTrainer.get_high_entropy_mask, self)
    self.get_gamma_weights = GRPOTrainer.get_gamma_weights
    for name, value in settings.items():
        setattr(args if hasattr(args, name) else self, name, value)
    return self


def inputs(x, **more):
    mask = x["response_mask"]
    none = torch.zeros(mask.shape[0], 0)
    trained = mask.sum(1)
    advantages = (x["advantages_in"] * mask).sum(1) / trained.clamp(min=1)
    return {"prompt_ids": none, "prompt_mask": none, "completion_ids": mask, "completion_mask": mask,
            "advantages": advantages, "old_per_token_logps": x["old_log_probs"],
            "old_logps": (x["old_log_probs"] * mask).sum(1), "ref_per_token_logps": x["ref_log_probs"],
            "num_items_in_batch": mask.sum(), **more}


def grpo(x, log_prob, metric=True, weighted=False, **settings):
    more = {}
    if weighted:
        settings |= {"use_vllm": True, "vllm_importance_sampling_correction": True}
        more["importance_sampling_ratio"] = torch.where(x["response_mask"] > 0, x["rollout_is_weights"], 1.0)
    self = trainer(log_prob, x, **settings)
    loss = GRPOTrainer._compute_loss(self, None, inputs(x, **more))
    share = self._metrics["train"].get("clip_ratio/region_mean")
    return loss, {"actor/pg_clipfrac": share[0]} if metric and share else {}


def rloo(x, log_prob):
    self = trainer(log_prob, x)
    loss = RLOOTrainer._compute_loss(self, None, inputs(x))
    return loss, {"actor/pg_clipfrac": self._metrics["train"]["clip_ratio/region_mean"][0]}


def openrlhf(x, log_prob, **settings):
    policy_loss = openrlhf_loss()(clip_eps_low=LOW, clip_eps_high=HIGH, **settings)
    loss, share, kl, _ = policy_loss(log_prob, x["old_log_probs"], x["advantages_in"], x["response_mask"])
    return loss, {"actor/pg_clipfrac": share.item(), "actor/ppo_kl": kl.item()}


def clip_cov(x, log_prob):
    """Chooses all candidates, so that nothing is random."""
    from verl.trainer.ppo.core_algos import compute_policy_loss_clip_cov

    config = SimpleNamespace(clip_ratio=0.2, clip_ratio_low=LOW, clip_ratio_high=HIGH, global_batch_info={},
                             policy_loss=SimpleNamespace(clip_cov_ratio=1.0, clip_cov_lb=0.1, clip_cov_ub=1.5))
    return compute_policy_loss_clip_cov(x["old_log_probs"], log_prob, x["advantages_in"], x["response_mask"],
                                        "token-mean", config)


NO_DUAL_CLIP = {"clip_ratio_c": 1e9}
BY_TOKEN, BY_RESPONSE = "token-mean", "seq-mean-token-mean"
# name, the reference, our loss, its aggregation, our settings. TRL's means over responses count those without a token; its
# clip metrics are of responses if the ratio is; they ignore delta where it is inside the clip range.
REFERENCES = [
    ("TRL grpo", lambda x, l: grpo(x, l, loss_type="grpo"), "vanilla", BY_RESPONSE, NO_DUAL_CLIP),
    ("TRL bnpo", lambda x, l: grpo(x, l, loss_type="bnpo"), "vanilla", BY_TOKEN, NO_DUAL_CLIP),
    ("TRL dapo", lambda x, l: grpo(x, l, loss_type="dapo"), "vanilla", BY_TOKEN, NO_DUAL_CLIP),
    ("TRL dr_grpo", lambda x, l: grpo(x, l, loss_type="dr_grpo"), "vanilla", "seq-mean-token-sum-norm",
     NO_DUAL_CLIP | {"loss_scale_factor": 11}),
    ("TRL delta", lambda x, l: grpo(x, l, loss_type="dapo", delta=1.5), "vanilla", BY_TOKEN, {"delta": 1.5}),
    ("TRL delta within the clip range", lambda x, l: grpo(x, l, False, loss_type="dapo", delta=1.1), "vanilla",
     BY_TOKEN, {"delta": 1.1}),
    ("TRL delta beyond the dual clip", lambda x, l: grpo(x, l, loss_type="dapo", delta=5.0), "vanilla", BY_TOKEN,
     {"delta": 5.0}),
    ("TRL weights", lambda x, l: grpo(x, l, loss_type="dapo", weighted=True), "vanilla", BY_TOKEN,
     NO_DUAL_CLIP | {"weighted": True}),
    ("TRL kl", lambda x, l: grpo(x, l, loss_type="dapo", beta=0.04), "vanilla", BY_TOKEN, NO_DUAL_CLIP | {"k3": 0.04}),
    *[(f"TRL entropy {q}", lambda x, l, q=q: grpo(x, l, loss_type="dapo", beta=0.04, top_entropy_quantile=q), "vanilla",
       BY_TOKEN, NO_DUAL_CLIP | {"k3": 0.04, "top_entropy_quantile": q}) for q in (0.2, 0.5, 0.8)],
    ("TRL gspo", lambda x, l: grpo(x, l, False, loss_type="grpo", importance_sampling_level="sequence"), "gspo",
     BY_RESPONSE, {}),
    ("TRL luspo", lambda x, l: grpo(x, l, False, loss_type="luspo", importance_sampling_level="sequence"), "gspo",
     "seq-mean-token-sum", {}),
    ("TRL gspo by token", lambda x, l: grpo(x, l, False, loss_type="dapo", importance_sampling_level="sequence"), "gspo",
     BY_TOKEN, {}),
    ("TRL sapo", lambda x, l: grpo(x, l, loss_type="sapo", sapo_temperature_neg=1.3), "sapo", BY_RESPONSE,
     {"tau_neg": 1.3}),
    ("TRL cispo", lambda x, l: grpo(x, l, loss_type="cispo", epsilon_high=1.25), "cispo", BY_TOKEN,
     {"clip_ratio_low": 1.0, "clip_ratio_high": 0.25}),
    ("TRL vespo", lambda x, l: grpo(x, l, loss_type="vespo"), "vespo", BY_TOKEN, {}),
    ("TRL vespo weights", lambda x, l: grpo(x, l, loss_type="vespo", weighted=True, vespo_k_neg=2.5), "vespo", BY_TOKEN,
     {"weighted": True, "vespo_k_neg": 2.5}),
    ("TRL rloo", rloo, "rloo", BY_RESPONSE, {}),
    ("OpenRLHF ppo", openrlhf, "vanilla", BY_TOKEN, NO_DUAL_CLIP),
    ("OpenRLHF ppo by response", lambda x, l: openrlhf(x, l, token_level_loss=False), "vanilla", BY_RESPONSE,
     NO_DUAL_CLIP),
    ("OpenRLHF dual clip", lambda x, l: openrlhf(x, l, dual_clip=1.7), "vanilla", BY_TOKEN, {"clip_ratio_c": 1.7}),
    ("OpenRLHF gspo", lambda x, l: openrlhf(x, l, policy_loss_type="gspo"), "gspo", BY_RESPONSE, {}),
    ("verl clip_cov", clip_cov, "clip_cov", BY_TOKEN,
     {"clip_cov_ratio": 1.0, "clip_cov_lb": 0.1, "clip_cov_ub": 1.5}),
]


def rounded(value):
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.9g}")


def main():
    cases = []
    for seed, rows, width, spread, empty_row in [(1, 6, 7, 0.3, False), (2, 7, 6, 0.8, True)]:
        x = case(seed, rows, width, spread, empty_row)
        results = {}
        for name, reference, loss_mode, aggregation, settings in REFERENCES:
            over_all_rows = name.startswith("TRL") and aggregation != BY_TOKEN
            if empty_row and over_all_rows:
                continue
            log_prob = x["log_probs"].clone().requires_grad_()
            loss, metrics = reference(x, log_prob)
            loss.backward()
            assert math.isfinite(loss.item())
            results[name] = {
                "loss_mode": loss_mode,
                "loss_agg_mode": aggregation,
                "settings": {"clip_ratio_low": LOW, "clip_ratio_high": HIGH, **settings},
                "loss": rounded(loss.item()),
                "grad": rounded(log_prob.grad.tolist()),
                "metrics": {name: rounded(value) for name, value in metrics.items()},
            }
        cases.append({**{name: rounded(column.tolist()) for name, column in x.items()}, "policy_loss": results})
    source = "trl 1.16.0 GRPOTrainer and RLOOTrainer, openrlhf 0.11.0 PolicyLoss, verl 0.9.1 core_algos; torch CPU float32"
    with open(sys.argv[1], "w") as file:
        json.dump({"source": source, "cases": cases}, file, separators=(",", ":"))
        file.write("\n")


main()
