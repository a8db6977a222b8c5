"""Writes tests/golden/rollout-log-probs.json: the log-probabilities that vLLM reports of tokens it samples.

    pip install numpy
    python scripts/goldens/golden_rollout_log_probs.py > tests/golden/rollout-log-probs.json

vLLM cannot be run here, so these are the steps of its sampler (vllm/v1/sample/sampler.py and ops/topk_topp_sampler.py) in their order,
in numpy and float64: tokens that may not come yet, repetition penalty, and then, unless the temperature is 0, temperature, min-p,
top-k, top-p. `processed_logprobs` is the log-softmax of what is left, `raw_logprobs` that of the logits before all of that.
"""

import json
import sys

import numpy as np

RANDOM = np.random.default_rng(20261122)
NEVER = float("-inf")


def log_softmax(x):
    shifted = x - x.max()
    return shifted - np.log(np.exp(shifted).sum())


def processed(logits, repeated, forbidden, temperature, top_k, top_p, min_p, repetition_penalty):
    x = logits.copy()
    x[forbidden] = NEVER
    penalised = np.where(x > 0, x / repetition_penalty, x * repetition_penalty)
    x[repeated] = penalised[repeated]
    if temperature == 0:
        return log_softmax(x)
    x = x / temperature
    if min_p > 0:
        probs = np.exp(log_softmax(x))
        x[probs < min_p * probs.max()] = NEVER
    ascending = np.argsort(x, kind="stable")
    sorted_ = x[ascending]
    if top_k > 0:
        sorted_[sorted_ < sorted_[-min(top_k, len(x))]] = NEVER
    if top_p < 1:
        below = np.cumsum(np.exp(log_softmax(sorted_))) <= 1 - top_p
        below[-1] = False
        sorted_[below] = NEVER
    x[ascending] = sorted_
    return log_softmax(x)


OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
SETTINGS = [
    {}, {"temperature": 0.5}, {"temperature": 0.0}, {"top_p": 0.8}, {"top_p": 0.3}, {"top_k": 3}, {"min_p": 0.2},
    {"repetition_penalty": 1.7}, {"temperature": 0.0, "repetition_penalty": 1.7},
    {"temperature": 1.6, "top_k": 5, "top_p": 0.7, "min_p": 0.05, "repetition_penalty": 1.3},
]


def main():
    cases = []
    for logits in [np.arange(4.0), RANDOM.normal(scale=2.0, size=9), RANDOM.normal(scale=1.0, size=40)]:
        for changes in [([], []), ([1, 3], [2])]:
            for settings in SETTINGS:
                settings = OFF | settings
                repeated, forbidden = changes
                log_probs = processed(logits, repeated, forbidden, **settings)
                cases.append({
                    "logits": logits.tolist(), "repeated": repeated, "forbidden": forbidden, "settings": settings,
                    "processed_logprobs": [None if np.isinf(x) else x for x in log_probs.tolist()],
                    "raw_logprobs": log_softmax(logits).tolist(),
                })
    json.dump({"source": "the steps of vLLM's v1 sampler in numpy, float64", "cases": cases}, sys.stdout, separators=(",", ":"))
    print()


main()
