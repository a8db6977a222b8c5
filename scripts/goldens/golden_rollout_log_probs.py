"""Writes tests/golden/rollout-log-probs.json: the log-probabilities that vLLM reports for its sampled tokens.

    pip install numpy
    python scripts/goldens/golden_rollout_log_probs.py > tests/golden/rollout-log-probs.json

vLLM cannot be run here, so these are the steps of its sampler (0.33.0: vllm/v1/sample/sampler.py, logits_processor/builtin.py, ops/bad_words.py,
ops/topk_topp_sampler.py and model_executor/layers/utils.py) in their order, in numpy and float64: allowed tokens, bad words, stop
tokens before min_tokens, biases, the penalties for repetition, frequency and presence, and then, unless the temperature is 0,
temperature, min-p, top-k, top-p. `processed_logprobs` is the log-softmax of the remaining logits, `raw_logprobs` that of the
original logits.
"""

import json
import sys

import numpy as np

RANDOM = np.random.default_rng(20261122)
NEVER = float("-inf")


def log_softmax(x):
    shifted = x - x.max()
    return shifted - np.log(np.exp(shifted).sum())


def apply_bad_words(x, bad_words, past):
    for word in bad_words:
        if len(word) > len(past) + 1:
            continue
        prefix_length = len(word) - 1
        actual_prefix = past[-prefix_length:] if prefix_length > 0 else []
        if actual_prefix == word[:prefix_length]:
            x[word[-1]] = NEVER


def apply_penalties(x, prompt, response, repetition, frequency, presence):
    counts = np.bincount(np.array(response, dtype=int), minlength=len(x))
    in_response = counts > 0
    in_prompt = np.bincount(np.array(prompt, dtype=int), minlength=len(x)) > 0
    penalised = np.where(x > 0, x / repetition, x * repetition)
    x = np.where(in_prompt | in_response, penalised, x)
    x -= frequency * counts
    x -= presence * in_response
    return x


def processed(logits, prompt, response, early_stops, settings):
    x = logits.copy()
    if settings["allowed_token_ids"] is not None:
        not_allowed = np.ones(len(x), dtype=bool)
        not_allowed[settings["allowed_token_ids"]] = False
        x[not_allowed] = NEVER
    apply_bad_words(x, settings["bad_words"], response)
    x[early_stops] = NEVER
    for token, bias in settings["logit_bias"].items():
        x[int(token)] += bias
    x = apply_penalties(
        x, prompt, response, settings["repetition_penalty"], settings["frequency_penalty"], settings["presence_penalty"]
    )
    if settings["temperature"] == 0:
        return log_softmax(x)
    x = x / settings["temperature"]
    top_k, top_p, min_p = settings["top_k"], settings["top_p"], settings["min_p"]
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


OFF = {
    "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0,
    "frequency_penalty": 0.0, "logit_bias": {}, "bad_words": [], "allowed_token_ids": None,
}
SETTINGS = [
    {}, {"temperature": 0.5}, {"temperature": 0.0}, {"top_p": 0.8}, {"top_p": 0.3}, {"top_k": 3}, {"min_p": 0.2},
    {"repetition_penalty": 1.7}, {"temperature": 0.0, "repetition_penalty": 1.7},
    {"temperature": 1.6, "top_k": 5, "top_p": 0.7, "min_p": 0.05, "repetition_penalty": 1.3},
    {"presence_penalty": 1.5}, {"presence_penalty": -2.0, "temperature": 0.7}, {"frequency_penalty": 0.8},
    {"temperature": 0.0, "frequency_penalty": -1.0}, {"logit_bias": {"0": 2.5, "3": -1.25}},
    {"bad_words": [[0], [1, 3], [3, 1, 3], [2, 1, 3], [3, 1]]}, {"allowed_token_ids": [0, 1, 3]},
    {
        "allowed_token_ids": [0, 1, 3], "bad_words": [[3, 1, 0]], "logit_bias": {"1": 3.0, "2": 9.0}, "repetition_penalty": 1.4,
        "frequency_penalty": 0.5, "presence_penalty": 0.75, "temperature": 1.3, "top_p": 0.9,
    },
]
# The prompt, the response so far, and the stop tokens that are not allowed yet.
HISTORIES = [([], [], []), ([1, 2, 1], [3, 3, 1], []), ([1, 3], [], [2])]


def main():
    cases = []
    for logits in [np.arange(4.0), RANDOM.normal(scale=2.0, size=9), RANDOM.normal(scale=1.0, size=40)]:
        for prompt, response, early_stops in HISTORIES:
            for settings in SETTINGS:
                settings = OFF | settings
                log_probs = processed(logits, prompt, response, early_stops, settings)
                cases.append({
                    "logits": logits.tolist(), "prompt": prompt, "response": response, "early_stops": early_stops,
                    "settings": settings, "processed_logprobs": [None if np.isinf(x) else x for x in log_probs.tolist()],
                    "raw_logprobs": log_softmax(logits).tolist(),
                })
    json.dump({"source": "the steps of vLLM's v1 sampler in numpy, float64", "cases": cases}, sys.stdout, separators=(",", ":"))
    print()


main()
