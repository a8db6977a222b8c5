#!/usr/bin/env python3
"""Compares `trainer eval` with verl's prime_math itself, on generated answers to competition problems.

    pip install verl==0.9.1 --no-deps; pip install sympy pylatexenc math-verify
    python scripts/compare/differential_prime_math.py target/release/trainer --n 4000 --seed 1

Decisions and extracted answers must equal verl's; the exit status is 1 if anything differs. Answers that need algebra go to
math-verify, which may differ from the sympy that verl uses: those answers are counted separately.
"""

import argparse
import collections
import contextlib
import io
import random
import sys

from differential_rewards import Case, Scorer, by_trainer, verl_rule
from rewardlib import prime_math

SOURCES = [f"numina_{name}" for name in ["aops_forum", "synthetic_math", "amc_aime", "synthetic_amc", "cn_k12", "olympiads"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", help="path of the binary")
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shown", type=int, default=10, help="differences printed")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    cases = [Case(*prime_math.case(rng), rng.choice(SOURCES)) for _ in range(arguments.n)]
    ours = by_trainer(arguments.trainer, Scorer("prime_math", None, None, SOURCES), cases)
    compute_score = verl_rule("prime_math").compute_score
    counts = collections.Counter()
    for case, mine in zip(cases, ours, strict=True):
        with contextlib.redirect_stdout(io.StringIO()):
            right, _, answer = compute_score(case.response, case.ground_truth)
        tier = "math-verify" if "compared_by" in mine else "decided"
        same = mine["pred"] == answer and mine["score"] == mine["acc"] == float(right)
        counts[tier, "cases"] += 1
        counts[tier, "right"] += bool(right)
        counts[tier, "differences"] += not same
        if not same and tier == "decided" and counts[tier, "differences"] <= arguments.shown:
            print(f"{case.response!r}, ground truth {case.ground_truth!r}: verl {(right, answer)}, here {mine}")
    print("| | cases | right by verl | differences |\n|---|---|---|---|")
    for tier in ["decided", "math-verify"]:
        print(f"| {tier} | " + " | ".join(str(counts[tier, what]) for what in ["cases", "right", "differences"]) + " |")
    sys.exit(counts["decided", "differences"] > 0)


if __name__ == "__main__":
    main()
