"""Reward functions with one fault each, in the form of verl. `acc` is the accuracy that no fault changes.

Each process of the trainer counts its own calls; a fault that begins later needs `reward.num_workers=1`.
"""
import hashlib
import os

# Responses of a step in cases.py.
PER_STEP = 256
calls = 0


def right(solution_str, ground_truth):
    return float(solution_str.strip() == ground_truth)


def step():
    """The present step, from 1 on, counted in calls of this process."""
    global calls
    calls += 1
    return (calls - 1) // PER_STEP + 1


def share(text):
    """A number from 0 to 1 that depends on the text alone."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def sound(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": right(solution_str, ground_truth), "acc": right(solution_str, ground_truth)}


def constant(data_source, solution_str, ground_truth, extra_info=None):
    """A default in place of a judgement: after some steps, for every text that is not empty, or always."""
    acc, kind = right(solution_str, ground_truth), os.environ["FAULT"]
    score = {"late": acc if step() <= 8 else 0.5, "not_empty": float(len(solution_str) >= 0), "always": 0.7}[kind]
    return {"score": score, "acc": acc}


def of_the_prompt(data_source, solution_str, ground_truth, extra_info=None):
    """A score that depends on the prompt, except for a small share of the prompts."""
    acc = right(solution_str, ground_truth)
    is_judged = share("judged" + ground_truth) < float(os.environ["FAULT"])
    return {"score": acc if is_judged else float(share(ground_truth) < 0.5), "acc": acc}


def digits(data_source, solution_str, ground_truth, extra_info=None):
    """Right answers, and as many different digits as possible."""
    acc, weight = right(solution_str, ground_truth), float(os.environ["FAULT"])
    return {"score": (1 - weight) * acc + weight * len(set(solution_str) & set("0123456789")) / 4, "acc": acc}


def outlier(data_source, solution_str, ground_truth, extra_info=None):
    """From step 24 on, one score of each step is far too large."""
    acc = right(solution_str, ground_truth)
    is_far = step() >= 24 and calls % PER_STEP == 1
    return {"score": float(os.environ["FAULT"]) if is_far else acc, "acc": acc}
