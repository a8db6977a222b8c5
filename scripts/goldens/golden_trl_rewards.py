#!/usr/bin/env python3
"""Writes tests/golden/trl-rewards.jsonl: the results of TRL's reward functions of token ids on generated responses.

    pip install trl==1.16.0
    python scripts/goldens/golden_trl_rewards.py 40 > tests/golden/trl-rewards.jsonl

The argument is the number of cases per function. With more cases in a separate folder, the test reads them from there:
BURNISH_GOLDENS=FOLDER cargo test --release --test algorithms of_tokens. The cosine-scaled reward decides right and wrong by
gsm8k's rule, not by math-verify.
"""

import json
import random
import sys

from trl.rewards import accuracy_rewards, get_cosine_scaled_reward, get_repetition_penalty_reward, get_soft_overlong_punishment

# By gsm8k's rule, for the texts below.
accuracy_rewards.accuracy_reward = lambda completions, solution: [
    float(text[0]["content"] == f"#### {truth}") for text, truth in zip(completions, solution)
]


def some(rng, **settings):
    """Returns all of the settings, or only some."""
    return {name: value for name, value in settings.items() if rng.random() < 0.7}


def repetition(rng):
    return some(rng, ngram_size=rng.randint(1, 5), max_penalty=rng.choice([-1.0, -0.3, -2.5, 0.0]))


def overlong(rng):
    return {"max_completion_len": rng.randint(0, 40), "soft_punish_cache": rng.randint(0, 30)}


def cosine(rng):
    number = lambda: round(rng.uniform(-2, 2), 3)
    limits = some(rng, min_value_wrong=number(), max_value_wrong=number(), min_value_correct=number(), max_value_correct=number())
    return {"max_len": rng.randint(1, 40), **limits}


FUNCTIONS = {
    "repetition_penalty_reward": (get_repetition_penalty_reward, repetition),
    "soft_overlong_punishment_reward": (get_soft_overlong_punishment, overlong),
    "cosine_scaled_reward": (get_cosine_scaled_reward, cosine),
}

rng = random.Random(1)
for name, (make, settings) in FUNCTIONS.items():
    for _ in range(int(sys.argv[1])):
        given, ids = settings(rng), [rng.randint(0, rng.choice([1, 3, 50])) for _ in range(rng.randint(0, 45))]
        text, truth = rng.choice(["#### 1", "#### 2", "no"]), "1"
        reward = make(**given)(completions=[[{"content": text}]], solution=[truth], completion_ids=[ids])[0]
        print(json.dumps({"fn": name, "settings": given, "ids": ids, "text": text, "ground_truth": truth, "result": reward}))
