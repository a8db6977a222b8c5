"""Writes tests/golden/data-sets.json: the values that verl's data preparation scripts get from their libraries.

    pip download --no-deps verl==0.9.1   (and unpack the archive)
    pip install datasets==5.2.0
    python scripts/goldens/golden_data_sets.py VERL > tests/golden/data-sets.json

The argument is the folder that holds the package's folder. Three parts of a prepared file are not in the scripts themselves: the
answer that `verl.utils.reward_score` extracts from a solution of MATH, the rows in `train[:75%]` and `train[-25%:]` of
`datasets`, and the columns that its `map` keeps in addition to those of the function.
"""

import importlib.util
import json
import pathlib
import sys

import pyarrow
from datasets import Dataset, ReadInstruction
from datasets.table import InMemoryTable

SPEC = importlib.util.spec_from_file_location(
    "math_reward", pathlib.Path(sys.argv[1]) / "verl/utils/reward_score/math_reward.py"
)
MATH = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MATH)

SOLUTIONS = [
    "So $x=\\boxed{5}$.",
    "First \\boxed{1}, then $\\boxed{\\frac{1}{2}}$ at last.",
    "Thus \\boxed{\\text{(A, {B})} \\cup [0,1)}.",
    "We get $\\boxed 7$ as wanted.",
    "We get $\\boxed 7$ and then \\boxed{8}.",
    "Nested: \\boxed{a\\boxed{b}}.",
    "\\boxed{}",
    "Open: \\boxed{3",
    "Framed: \\fbox{3}",
    "No answer at all.",
    "Grüße: \\boxed{\\sqrt{2} \u00b5m}",
]


def solution(text):
    """The function `extract_solution` of verl's math_dataset.py; null where it fails."""
    try:
        return MATH.remove_boxed(MATH.last_boxed_only_string(text))
    except (AssertionError, TypeError):
        return None


def rows_of(spec, count):
    (part,) = ReadInstruction.from_spec(spec).to_absolute({"train": count})
    return [part.from_, part.to]


def mapped():
    """The columns of a mapped row: the function takes two out of the row, reads a third, and returns others."""
    table = pyarrow.table({"problem": ["2+2?"], "solution": ["\\boxed{4}"], "level": ["Level 1"], "type": ["Algebra"]})

    def process(example, index):
        question, answer = example.pop("problem"), example.pop("solution")
        return {"prompt": [{"role": "user", "content": question}], "ground_truth": solution(answer), "index": index}

    # A fingerprint keeps `datasets` from hashing the function.
    return Dataset(InMemoryTable(table), fingerprint="a").map(process, with_indices=True, new_fingerprint="b")[0]


golden = {
    "solutions": [{"solution": text, "ground_truth": solution(text)} for text in SOLUTIONS],
    "slices": [
        {"rows": count, "train": rows_of("train[:75%]", count), "test": rows_of("train[-25%:]", count)}
        for count in [*range(1, 15), 100, 101, 102, 103, 112_052]
    ],
    "mapped": mapped(),
}
print(json.dumps(golden, indent=1, ensure_ascii=False))
