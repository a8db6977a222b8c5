# words: --rate 5e-6
# expect: actor_rollout_ref.model.path=team/start-1b
# expect: actor_rollout_ref.actor.optim.lr=5e-6
# expect: reward_model.model.path=team/judge-1b
# unread: max_steps
# unread: changed by .map
# unread: partial(…, slack=3)
# unread: temperature
# unread: colour blue
# unread: SFTTrainer
# unread: callbacks
# missing: data.train_files
# missing: trainer.total_training_steps
# missing: actor_rollout_ref.rollout.temperature
import argparse
import os
from functools import partial

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer


def near(completions, slack=1, **kwargs):
    return [1.0 / (slack + len(text)) for text in completions]


parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, required=True)
parser.add_argument("--warm", action="store_true")
options = parser.parse_args()
heat = 1.0
if os.path.exists("warm"):
    heat = 0.5

if __name__ == "__main__":
    args = GRPOConfig(learning_rate=options.rate, max_steps=int(os.environ["STEPS"]), temperature=heat, colour="blue")
    rows = load_dataset("json", data_files="rows/a.jsonl", split="train").map(lambda row: {"prompt": row["question"]})
    rewards = [partial(near, slack=3), "team/judge-1b"]
    GRPOTrainer("team/start-1b", rewards, args=args, train_dataset=rows, callbacks=[print]).train()
    SFTTrainer("team/start-1b", args=SFTConfig(learning_rate=1e-5), train_dataset=rows).train()
