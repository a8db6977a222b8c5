#!/usr/bin/env python3
"""Writes tests/golden/verl-scorers.jsonl: the results of the functions in verl's `utils/reward_score` that reward files import.

    pip install verl==0.9.1 --no-deps; pip install sympy pylatexenc
    python scripts/goldens/golden_verl_scorers.py > tests/golden/verl-scorers.jsonl

A line is a call and its result; `raises` is the type of its error.
"""

import itertools
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "compare"))
from differential_rewards import verl_rule  # noqa: E402

NUMBERS = ["#### 42", "so #### 1,234.5", "#### $42", "#### -7.", "42", "no number", "1. 2, .", ".", "#### 1 #### 2", "٣ 4", "x" * 400 + " 5"]
BOXES = [
    r"\boxed{42}", r"\boxed{\frac12}", r"\boxed{1} and \boxed{2}", r"\boxed{\text{a}}", r"\fbox{3}", r"\boxed 7$ x", r"\boxed {8}", r"\boxed{9",
    r"\boxed{a{b}c}", "none", r"\boxed{1}}", r"\fbox{1} \boxed", r"$\boxed{x=5}$", r"\boxed{}", r"\boxed{0.5} ends", "\\boxed{1\n2}",
]
FORMS = [
    r"\frac12", r"\dfrac{1}{2}", "1/2", "0.5", ".5", r"\sqrt3", r"\sqrt", r"\frac1", r"x = 5", "50\\%", "5\\text{ cm}", r"\text{ a} \text{ b}", "",
    r"\left(1,2\right)", "90^\\circ", "\\frac{1}{72}", r"\frac1{72}", "a\\!b", "\\$7", "k=-0.5", "1 000", "3/4/5", "None",
]
ANSWERS = [
    "Answer: 42", "answer : $\\frac12$", "Answer: 1\nAnswer: 2", "The answer is 3", r"\boxed{42}", "Answer:", "Answer: 1,000 dollars", r"x \boxed{4",
    r"Answer: \text{5}", "", "Answer: x=6", r"\boxed{7} Answer: 8", "a" * 350 + "Answer: 9", r"Answer: \boxed{10}",
]
TRUTHS = ["42", r"\frac{1}{2}", "2", "1000", "5", "6", r"\boxed{42}", "7", "9", "10"]
SEARCHES = [
    "<answer>The Beatles</answer>", "<answer>a</answer><answer> beatles. </answer>", "no answer", "<answer>x", "<answer></answer>",
    "<answer>The  BEATLES!</answer>" * 11, "<answer>The Beatles and more</answer>", "<answer>an\nan</answer>",
]
TARGETS = [{"target": "beatles"}, {"target": ["Stones", "the Beatles"]}, {"target": []}, {"target": ""}]
RESPONSES = [
    "The answer is 42.", "Answer: $5$", r"so \boxed{\frac{1}{2}}", "x", "Step 2: \\boxed{3}", "We get 7", r"answer: \boxed{(1, 2)}", "is 1. 2",
    "no digits answer: y", "answers are 3\n", "the total is answer 4 is the answer", "",
]
VALUES = ["42", "5", r"\frac{1}{2}", "0.5", "3", "(1,2)", "1", "y", "4", 7]


def calls():
    for text in NUMBERS:
        for method in ("strict", "flexible"):
            yield "gsm8k", "extract_solution", [text], {"method": method}
            yield "gsm8k", "compute_score", [text, "42"], {"method": method, "format_score": 0.1, "score": 2.0}
    yield "gsm8k", "compute_score", ["#### 42", 42], {}
    yield "gsm8k", "extract_solution", ["1"], {"method": "any"}
    for module, text in itertools.product(("math_reward", "math_dapo"), BOXES):
        yield module, "last_boxed_only_string", [text], {}
        yield module, "remove_boxed", [text], {}
    for text in FORMS:
        yield "math_reward", "strip_string", [text], {}
        yield "math_dapo", "normalize_final_answer", [text], {}
    for one, two in itertools.product(FORMS[::2] + [None], FORMS[::3] + [None, 5]):
        yield "math_reward", "is_equiv", [one, two], {}
    for text, truth in itertools.product(BOXES, ["42", r"\frac{1}{2}", "2", "5", 5]):
        yield "math_reward", "compute_score", [text, truth], {}
    yield "math_batch", "compute_score_batched", [["s", "s"], BOXES[:2], ["42", "1/2"], [{}, {}]], {}
    for text, truth in itertools.product(ANSWERS, TRUTHS):
        for function in ("is_correct_minerva", "is_correct_strict_box", "verify", "compute_score"):
            yield "math_dapo", function, [text, truth], {}
        yield "math_dapo", "compute_score", [text, truth], {"strict_box_verify": True}
    yield "math_dapo", "is_correct_minerva", ["Answer: 42", r"\boxed{42}"], {"gt_need_extract": True}
    yield "math_dapo", "is_correct_minerva", ["R 42", "42"], {"answer_pattern": r"R (\d+)"}
    yield "math_dapo", "is_correct_strict_box", [r"\boxed{42}" + "x" * 50, "42"], {"pause_tokens_index": [0, 0, 0, 100]}
    for text in SEARCHES:
        yield "search_r1_like_qa_em", "extract_solution", [text], {}
        yield "search_r1_like_qa_em", "count_answer_tags", [text], {}
        yield "search_r1_like_qa_em", "normalize_answer", [text], {}
        for truth in TARGETS:
            yield "search_r1_like_qa_em", "em_check", [text, truth["target"]], {}
            yield "search_r1_like_qa_em", "subem_check", [text, truth["target"]], {}
            yield "search_r1_like_qa_em", "compute_score", [text, truth], {}
            yield "search_r1_like_qa_em", "compute_score", [text, truth], {"format_score": 0.2, "score": 3.0}
            yield "search_r1_like_qa_em", "compute_score_subem", [text, truth], {"format_score": 0.2}
    for text in RESPONSES:
        yield "prime_math", "match_answer", [text], {}
        for truth in VALUES:
            yield "prime_math", "compute_score", [text, truth], {}
    for one, two in itertools.product(VALUES[:-1], VALUES[:-1]):
        yield "prime_math", "grade_answer", [one, two], {}


def main():
    names = ["gsm8k", "math_reward", "math_batch", "math_dapo", "search_r1_like_qa_em", "prime_math"]
    modules = {name: verl_rule(name) for name in names}
    out, sys.stdout = sys.stdout, sys.stderr  # some functions print
    seen = set()
    for module, function, args, kwargs in calls():
        case = {"module": module, "function": function, "args": args, "kwargs": kwargs}
        try:
            case["result"] = getattr(modules[module], function)(*args, **kwargs)
        except Exception as error:
            case["raises"] = type(error).__name__
        line = json.dumps(case)
        if line not in seen:
            seen.add(line)
            print(line, file=out)


main()
