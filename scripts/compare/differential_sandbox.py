#!/usr/bin/env python3
"""Compares `trainer eval` with verl's sandbox_fusion client, both with the same service of this script.

    pip install verl==0.9.1 --no-deps; pip install requests
    python scripts/compare/differential_sandbox.py target/release/trainer --n 2000 --seed 1

The score and the status of each case must be equal. Where verl gives 0 without a verdict or without readable test cases, there
must be no score here (reward.on_error=abstain). The executed programs are this script's own. The exit status is 1 if anything
differs.
"""

import argparse
import collections
import contextlib
import copy
import io
import json
import logging
import random
import sys
import threading

from differential_rewards import Case, Scorer, by_trainer, single, verl_rule
from rewardlib import sandbox

SOURCES = ["codecontests", "apps", "codeforces", "taco"]
NO_BLOCK = "Invalid completion (missing code block)"
# verl's statuses of cases without a verdict of the service.
LOST = ("api_error", "sandbox_error", "unknown", "unexpected", "internal_error")


def readable(truth):
    """True if these are test cases; verl reads them only if there is a program."""
    return not any(truth is bad or truth == bad for bad in sandbox.BAD)


def expected(score, metadata, truth):
    """The expected output of `trainer eval`: the kind of case, the score and the statuses."""
    if not readable(truth):
        return "no test cases", None, None
    if metadata[0].get("error") == NO_BLOCK:
        return "no program", 0.0, []
    statuses = [case["status"] for case in metadata[:10]]
    if any(status.startswith(LOST) for status in statuses):
        return "no verdict", None, None
    return "scored", score, statuses


def requests(asked):
    """The requests, without the code around a function, which is ours or verl's."""
    own = lambda code: code[code.index("# RUN") :].split("\n\n")[0] if "# RUN" in code else code
    return collections.Counter(json.dumps({**payload, "code": own(payload["code"])}, sort_keys=True) for payload in asked)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", help="path of the binary")
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shown", type=int, default=10, help="differences printed")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    cases = [Case(*sandbox.case(rng), rng.choice(SOURCES)) for _ in range(arguments.n)]
    url, asked = sandbox.serve()
    overrides = [f"reward.sandbox_fusion.url={url}", "reward.on_error=abstain"]
    ours = by_trainer(arguments.trainer, Scorer("sandbox_fusion", None, None, SOURCES, overrides), cases)
    our_requests = requests(asked)
    asked.clear()
    logging.disable(logging.CRITICAL)
    compute_score = verl_rule("sandbox_fusion").compute_score
    slots = threading.Semaphore(64)
    counts = collections.Counter()
    for case, mine in zip(cases, ours, strict=True):
        with contextlib.redirect_stderr(io.StringIO()):
            result = compute_score(url, slots, 1024, case.response, copy.deepcopy(case.ground_truth), continuous=True)
        kind, score, statuses = expected(*result, case.ground_truth)
        same = mine["score"] == single(score) if score is None else single(mine["score"]) == single(score)
        same = same and mine.get("tests") == statuses
        counts[kind, "cases"] += 1
        counts[kind, "differences"] += not same
        counts.update({("status", status): 1 for status in statuses or []})
        if not same and counts[kind, "differences"] <= arguments.shown:
            print(f"{case.response!r}, ground truth {case.ground_truth!r}: verl {(score, statuses)}, here {mine}")
    surplus = our_requests - requests(asked)
    for request in list(surplus)[: arguments.shown]:
        print(f"verl does not ask {request}")
    print("| | cases | differences |\n|---|---|---|")
    for kind in ["scored", "no program", "no verdict", "no test cases"]:
        print(f"| {kind} | {counts[kind, 'cases']} | {counts[kind, 'differences']} |")
    print(f"| requests | {our_requests.total()} | {surplus.total()} |")
    statuses = sorted(name for kind, name in counts if kind == "status")
    print("Statuses that occurred: " + ", ".join(statuses))
    sys.exit(surplus.total() > 0 or any(counts[kind, what] for kind, what in counts if what == "differences"))


if __name__ == "__main__":
    main()
