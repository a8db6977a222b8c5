#!/usr/bin/env python3
"""Compares `trainer eval` with the scoring functions of verl and TRL themselves, on generated answers.

    pip install verl==0.9.1 --no-deps; pip install trl mathruler math-verify
    python scripts/compare/differential_rewards.py target/release/trainer --n 2000 --seed 1

verl and TRL need not be installed: a folder that holds them may be on PYTHONPATH. Only the files of verl that score are loaded.
A response is a generator's known answer in one of its notations, in one of the frames that scorers look for, with errors at
random places; the ground truth is that answer in about half of the cases. Score, `acc` and the extracted answer must be equal
where both sides have one; numbers are compared as float32. Answers that need algebra go to math-verify, which may differ from the
sympy behind mathruler; they are counted separately and are not failures. prime_math and programs have their own scripts.

To add a scorer, add a row to SCORERS. The exit status is 1 if anything differs.
"""

import argparse
import contextlib
import importlib
import importlib.util
import io
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import types
from dataclasses import dataclass, field
from typing import Callable

from rewardlib import answers

NO_ANSWER = "[INVALID]"
EM_SOURCES = ["nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle"]


def verl_rule(name):
    """A module of verl/utils/reward_score, without the imports of verl's packages."""
    for package in ["verl", "verl.utils", "verl.utils.reward_score"]:
        if package in sys.modules:
            continue
        parent = sys.modules.get(package.rpartition(".")[0])
        spec = importlib.machinery.PathFinder.find_spec(package, parent and parent.__path__)
        if spec is None:
            sys.exit(f"{package} is not found: install verl, or put a folder that holds it on PYTHONPATH")
        module = types.ModuleType(package)
        module.__path__ = list(spec.submodule_search_locations)
        sys.modules[package] = module
    return importlib.import_module(f"verl.utils.reward_score.{name}")


def by_verl(module, **kwargs):
    """verl's function as its reward manager uses it: `acc` is the score if the function returns a bare number."""

    def score(case):
        with contextlib.redirect_stdout(io.StringIO()):
            result = verl_rule(module).compute_score(case.response, case.ground_truth, **kwargs)
        if not isinstance(result, dict):
            return {"score": float(result), "acc": float(result)}
        answer = NO_ANSWER if result["pred"] is None else result["pred"]
        return {"score": float(result["score"]), "acc": float(result["acc"]), "pred": answer}

    return score


def by_trl(name, **kwargs):
    """A reward function of TRL that reads only the text."""

    def score(case):
        rewards = importlib.import_module("trl.rewards")
        return {"score": getattr(rewards, name)([[{"content": case.response}]], **kwargs)[0]}

    return score


@dataclass
class Case:
    response: str
    ground_truth: object
    data_source: str = ""


@dataclass
class Scorer:
    name: str
    oracle: Callable
    generate: Callable
    data_sources: list
    # The additional overrides of `trainer eval`.
    overrides: list = field(default_factory=list)


def function(name):
    return [f"reward_model.reward_functions={name}"]


SCORERS = [
    Scorer("gsm8k", by_verl("gsm8k"), answers.gsm8k, ["openai/gsm8k"]),
    Scorer("gsm8k_flexible", by_verl("gsm8k", method="flexible"), answers.gsm8k, ["openai/gsm8k"], function("gsm8k_flexible")),
    Scorer(
        "math_reward",
        by_verl("math_reward"),
        answers.math(answers.BOXED),
        ["lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500"],
    ),
    Scorer(
        "math_dapo",
        by_verl("math_dapo"),
        answers.math(answers.ANSWERED),
        ["math_dapo", "math", "math_dapo_reasoning", "aime", "aime2024", "aime_2025/I"],
    ),
    Scorer(
        "math_dapo_strict_box",
        by_verl("math_dapo", strict_box_verify=True),
        answers.math(answers.BOXED),
        ["math_dapo"],
        function("math_dapo_strict_box"),
    ),
    Scorer("search_r1", by_verl("search_r1_like_qa_em"), answers.question, [f"searchR1_{name}" for name in EM_SOURCES]),
    Scorer("geo3k", by_verl("geo3k"), answers.geometry, ["hiyouga/geometry3k"], [f"reward.python={sys.executable}"]),
    Scorer("think_format_reward", by_trl("think_format_reward"), answers.thought, ["openai/gsm8k"], function("think_format_reward")),
]


def cases_of(scorer, n, seed):
    rng = random.Random(f"{scorer.name} {seed}")
    return [Case(*scorer.generate(rng), rng.choice(scorer.data_sources)) for _ in range(n)]


def by_trainer(trainer, scorer, cases):
    """The output of `trainer eval` for each case."""
    with tempfile.TemporaryDirectory() as folder:
        rows, output = os.path.join(folder, "rows.jsonl"), os.path.join(folder, "scores.jsonl")
        with open(rows, "w", encoding="utf-8") as file:
            for case in cases:
                truth = {"style": "rule", "ground_truth": case.ground_truth}
                row = {"data_source": case.data_source, "reward_model": truth, "responses": [case.response]}
                file.write(json.dumps(row) + "\n")
        command = [trainer, "eval", f"data.path={rows}", f"data.output_path={output}", *scorer.overrides]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{' '.join(command)}\n{run.stderr}")
        with open(output, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def single(number):
    return None if number is None else struct.unpack("f", struct.pack("f", number))[0]


def difference(ours, theirs):
    """The difference, or None."""
    for key in ["score", "acc"]:
        if key in theirs and single(ours.get(key)) != single(theirs[key]):
            return key
    return "pred" if "pred" in theirs and "pred" in ours and ours["pred"] != theirs["pred"] else None


def compare(trainer, scorer, n, seed, shown):
    """Counts: cases, positive scores, cases for math-verify, and the differing ones among those and among the others."""
    cases = cases_of(scorer, n, seed)
    ours = by_trainer(trainer, scorer, cases)
    positive = left = left_different = different = 0
    for case, mine in zip(cases, ours, strict=True):
        theirs = scorer.oracle(case)
        positive += theirs["score"] > 0
        what = difference(mine, theirs)
        if "compared_by" in mine:
            left += 1
            left_different += what is not None
            continue
        if what is None:
            continue
        different += 1
        if different <= shown:
            said = {key: mine.get(key) for key in theirs}
            print(f"{scorer.name}: {what} of {case.response!r}, ground truth {case.ground_truth!r}: {theirs}, here {said}")
    return len(cases), positive, left, left_different, different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", help="path of the binary")
    parser.add_argument("--n", type=int, default=2000, help="answers per scorer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="names of scorers, separated by commas")
    parser.add_argument("--shown", type=int, default=5, help="differences printed per scorer")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",") if arguments.only else [scorer.name for scorer in SCORERS]
    unknown = set(chosen) - {scorer.name for scorer in SCORERS}
    if unknown:
        sys.exit(f"no scorer is called {', '.join(sorted(unknown))}")
    table = ["| scorer | cases | score above 0 | left to math-verify | of those different | differences |", "|---|---|---|---|---|---|"]
    failed = False
    for scorer in SCORERS:
        if scorer.name in chosen:
            counts = compare(arguments.trainer, scorer, arguments.n, arguments.seed, arguments.shown)
            failed |= counts[-1] > 0
            table.append(f"| {scorer.name} | " + " | ".join(map(str, counts)) + " |")
    print("\n".join(table))
    sys.exit(failed)


if __name__ == "__main__":
    main()
