"""Reward functions on rows, and scripts of other libraries as recipes."""

from pathlib import Path

from helpers import InFolder

import burnish

VERL = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    if solution_str == "broken":
        return {}[solution_str]
    return {"score": float(solution_str == ground_truth), "letters": len(solution_str)}

def trl(completions, length, **kwargs):
    return [None if n is None else float(len(c) - n) for c, n in zip(completions, length)]

def bad(completions, **kwargs):
    return [float("nan") for c in completions]

def in_batch(completions, **kwargs):
    assert len(completions) == 1, "together"
    return [1.0]
"""
ROWS = [{"response": text, "ground_truth": "4", "length": n} for text, n in [("4", 1), ("broken", 2), ("5", None)]]


def compute(data_source, solution_str, ground_truth, extra_info=None):
    return int(solution_str == ground_truth)


class Rewards(InFolder):
    def setUp(self):
        super().setUp()
        Path("reward.py").write_text(VERL)

    def test_each_response_has_its_score_or_its_error(self):
        right, broken, wrong = burnish.reward.check("reward.py:compute_score", ROWS)
        self.assertEqual((right["score"], right["letters"], wrong["score"]), (1.0, 1, 0.0))
        self.assertEqual(broken["row"], 1)
        for part in ("KeyError: 'broken'", "reward.py", "line 4"):
            self.assertIn(part, broken["error"])
        # A function in a file, here that of this test.
        self.assertEqual([row["score"] for row in burnish.reward.check(compute, ROWS)], [1, 0, 0])
        self.assertEqual([row["score"] for row in burnish.reward.check("reward.py:trl", ROWS)], [0, 4, None])
        self.assertEqual([row["error"] for row in burnish.reward.check("reward.py:bad", ROWS)], ["the score is NaN"] * 3)

    def test_a_built_in_function_and_a_file_of_rows(self):
        Path("rows.jsonl").write_text('{"completion": "#### 4", "answer": "4"}\n{"completion": "#### 5", "answer": "4"}\n')
        settings = {"data.response_key": "completion", "data.label_key": "answer"}
        scores = [row["score"] for row in burnish.reward.check("gsm8k", "rows.jsonl", settings)]
        self.assertEqual(scores, [1.0, 0.0])

    def test_what_cannot_be_called_is_said(self):
        for function, rows, part in [
            ("reward.py:lost", ROWS, "lost"),
            ("none.py", ROWS, "none.py"),
            ("reward.py:compute_score", [{"response": "x"}], "ground_truth"),
            (lambda text: 1, ROWS, "is not a function at the top level"),
            ("reward.py:compute_score", [{"text": "x"}], "row 0 has no response"),
            # TRL's functions see the batch; one that fails only there is named as a whole.
            ("reward.py:in_batch", ROWS, "together"),
        ]:
            with self.assertRaises((burnish.TrainerError, TypeError, ValueError)) as caught:
                burnish.reward.check(function, rows)
            self.assertIn(part, str(caught.exception))


TRL = """
from datasets import load_dataset
from trl import SFTConfig, SFTTrainer

trainer = SFTTrainer(
    model="data/arithmetic/model",
    train_dataset=load_dataset("json", data_files="rows.jsonl", split="train"),
    args=SFTConfig(output_dir="out", max_steps=3, bf16=True),
)
trainer.train()
"""


class Conversions(InFolder):
    def test_a_command_is_a_recipe_with_all_that_differs(self):
        command = (
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_files=t.parquet data.val_files=v.parquet "
            "actor_rollout_ref.model.path=m actor_rollout_ref.rollout.gpu_memory_utilization=0.6 data.train_batch_size=64"
        )
        found = burnish.convert(command)
        self.assertEqual((found.library, found.subcommand), ("verl", ""))
        self.assertIn("adv_estimator: grpo", found.recipe)
        self.assertTrue(any("gpu_memory_utilization" in line for line in found.ignored))
        self.assertIn("train_batch_size: 64", found.write("recipe.yaml").read_text())

    def test_a_program_is_recognised_by_its_text(self):
        Path("rows.jsonl").write_text('{"text": "1+1=2"}\n')
        found = burnish.convert(TRL)
        self.assertEqual((found.library, found.subcommand), ("TRL", "sft"))
        self.assertIn("total_training_steps: 3", found.recipe)
        Path("program.py").write_text(TRL)
        self.assertEqual(burnish.convert("program.py", peer="trl").recipe.splitlines()[1:], found.recipe.splitlines()[1:])

    def test_a_refusal_is_the_message_of_the_library(self):
        with self.assertRaises(burnish.TrainerError) as caught:
            burnish.convert("trl sft --learning_rate fast --model_name_or_path m --dataset_name d")
        self.assertEqual(caught.exception.code, 2)
        self.assertEqual(caught.exception.message, "`--learning_rate` needs a number, not fast")
        found = burnish.convert("trl sft --modle_name_or_path m --dataset_name d")
        self.assertIn("did you mean --model_name_or_path?", found.not_supported[0])
        with self.assertRaisesRegex(burnish.TrainerError, "no library takes the command"):
            burnish.convert("make coffee")
