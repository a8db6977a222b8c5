"""python first-minute-trl.py FOLDER: TRL's first GRPO script on the model and rows of `trainer`'s first task, timed like `first-minute`.

FOLDER is data/arithmetic of a checkout. The script is that of TRL's README, with a local model, rows and reward in the place of names on the
Hub, and with the sizes of recipes/arithmetic/first.yaml: 64 prompts of 8 responses a step, 64 steps.
"""
import json
import sys
import time

start = time.perf_counter()


def row(words):
    print(f"{words:32} {time.perf_counter() - start:6.1f} s", flush=True)


import pyarrow.parquet as parquet
from datasets import Dataset
from transformers import PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

folder = sys.argv[1]


def rows(file):
    read = parquet.read_table(f"{folder}/{file}").to_pylist()
    return Dataset.from_list([{"prompt": row["prompt"], "answer": row["reward_model"]["ground_truth"]} for row in read])


def reward(completions, answer, **_):
    return [float(completion[0]["content"].strip() == right) for completion, right in zip(completions, answer)]


options = GRPOConfig(
    output_dir="trl", max_steps=64, per_device_train_batch_size=512, per_device_eval_batch_size=512, num_generations=8,
    num_generations_eval=1, max_completion_length=8, learning_rate=4e-4, lr_scheduler_type="cosine", beta=0.0, bf16=False, use_cpu=True,
    logging_steps=1, save_strategy="no", report_to="none", disable_tqdm=True)
tokenizer = PreTrainedTokenizerFast.from_pretrained(f"{folder}/model", padding_side="left")
trainer = GRPOTrainer(model=f"{folder}/model", reward_funcs=reward, args=options, train_dataset=rows("train.parquet"),
                      eval_dataset=rows("test.parquet"), processing_class=tokenizer)
before = trainer.evaluate()["eval_reward"]
row("to the first validation")
trainer.train()
after = trainer.evaluate()["eval_reward"]
row("to that of step 64")
print(json.dumps({"accuracy": [round(before, 4), round(after, 4)]}))
