"""Writes tests/golden/prime_math.jsonl: [response, ground truth, answer, right] for 400 answers, by verl's prime_math itself.

    pip install verl==0.9.1 --no-deps; pip install sympy pylatexenc
    python scripts/goldens/golden_prime_math.py > tests/golden/prime_math.jsonl
"""

import contextlib
import io
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "compare"))
from differential_rewards import verl_rule  # noqa: E402
from rewardlib import prime_math  # noqa: E402

if __name__ == "__main__":
    rng = random.Random(20261122)
    for _ in range(400):
        response, truth = prime_math.case(rng)
        with contextlib.redirect_stdout(io.StringIO()):
            right, _, answer = verl_rule("prime_math").compute_score(response, truth)
        print(json.dumps([response, truth, answer, bool(right)]))
