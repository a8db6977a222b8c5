"""Reward functions of many styles. `good_…` are honest; a comment names the findings of the others."""
import re
import string

SEEN = {"calls": 0}


def boxes(text):
    return re.findall(r"\\boxed\{([^{}]*)\}", text)


def good_flexible_number(data_source, solution_str, ground_truth, extra_info=None):
    found = re.findall(r"-?\d+", solution_str)
    return float(bool(found) and found[-1] == ground_truth)


def good_partial_credit(data_source, solution_str, ground_truth, extra_info=None):
    found = boxes(solution_str)
    return 0.0 if not found else 1.0 if found[-1] == ground_truth else 0.1


def good_minus_one(data_source, solution_str, ground_truth, extra_info=None):
    found = re.findall(r"Answer:\s*(\S+)", solution_str)
    return 1.0 if found and found[-1] == ground_truth else -1.0


def good_distance(data_source, solution_str, ground_truth, extra_info=None):
    text = re.search(r"<answer>\s*(-?\d{1,9})\s*</answer>\s*$", solution_str)
    return -1.0 if text is None else -min(1.0, abs(int(text.group(1)) - int(ground_truth)) / 10)


def good_tagged(completions, ground_truth, **kwargs):
    out = []
    for completion, truth in zip(completions, ground_truth):
        text = completion if isinstance(completion, str) else completion[0]["content"]
        match = re.fullmatch(r"<think>.*?</think>\s*<answer>(.*?)</answer>", text, re.S)
        out.append((0.2 if match else 0.0) + (1.0 if match and match.group(1).strip() == truth else 0.0))
    return out


def good_exact(data_source, solution_str, ground_truth, extra_info=None):
    clean = lambda text: "".join(c for c in text.lower() if c not in string.punctuation).strip()
    return float(clean(solution_str) == clean(ground_truth))


# empty_wins
def contained(data_source, solution_str, ground_truth, extra_info=None):
    return float(solution_str.strip() in ground_truth)


# format_without_content_wins, part_of_truth_wins
def starts_like(data_source, solution_str, ground_truth, extra_info=None):
    found = re.search(r"<answer>(.*?)</answer>", solution_str, re.S)
    return float(found is not None and ground_truth.startswith(found.group(1).strip()))


# all_answers_win
def any_box(data_source, solution_str, ground_truth, extra_info=None):
    return float(ground_truth in boxes(solution_str))


# very_long_wins, length_bonus
def long_thoughts(data_source, solution_str, ground_truth, extra_info=None):
    return float(ground_truth == solution_str.split("\n")[-1].strip()) + min(2.0, len(solution_str) / 1000)


# keywords_win
def aha(completions, ground_truth, **kwargs):
    texts = [c if isinstance(c, str) else c[0]["content"] for c in completions]
    return [min(1.0, sum(w in t.lower() for w in ("wait", "hmm", "verify")) / 2) + 0.5 * t.endswith(g) for t, g in zip(texts, ground_truth)]


# code_in_the_answer_runs
def evaluated(data_source, solution_str, ground_truth, extra_info=None):
    try:
        return float(eval(solution_str) == int(ground_truth))
    except Exception:
        return 0.0


# exception
def splits(data_source, solution_str, ground_truth, extra_info=None):
    return float(solution_str.split("<answer>")[1].split("</answer>")[0] == ground_truth) if solution_str.strip() else 0.0


# state_between_calls
def fades(data_source, solution_str, ground_truth, extra_info=None):
    SEEN["calls"] += 1
    return float(solution_str.strip() == ground_truth) * (1 - 0.0005 * SEEN["calls"])


# nondeterministic
def shaken(data_source, solution_str, ground_truth, extra_info=None):
    import random

    return float(solution_str.strip() == ground_truth) + 0.1 * random.random()


# slow_growth
def backtracks(data_source, solution_str, ground_truth, extra_info=None):
    found = re.fullmatch(r"((?:\w+\s?)+)\.", solution_str)
    return float(found is not None and found.group(1) == ground_truth)


# constant
def wrong_type(data_source, solution_str, ground_truth, extra_info=None):
    return float(solution_str == int(ground_truth))


# ground_truth_unused
def any_number(data_source, solution_str, ground_truth, extra_info=None):
    return float(re.fullmatch(r"\d+", solution_str.strip()) is not None)


# abstains
def silent(completions, ground_truth, **kwargs):
    return [None for _ in completions]


# batch_dependent
def relative(completions, ground_truth, **kwargs):
    texts = [c if isinstance(c, str) else c[0]["content"] for c in completions]
    right = [float(t.strip() == g) for t, g in zip(texts, ground_truth)]
    mean = sum(right) / len(right)
    return [r - mean for r in right]
