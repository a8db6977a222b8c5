# expect: actor_rollout_ref.model.path=team/start-1b
# expect: data.train_files=hf://datasets/team/sums/hard/train
# expect: actor_rollout_ref.actor.optim.lr=3e-6
# expect: data.train_batch_size=8
# expect: actor_rollout_ref.rollout.n=4
# expect: actor_rollout_ref.actor.kl_loss_coef=0.02
# expect: custom_reward_function.path=tests/data/peers/programs/literals.py
# expect: custom_reward_function.name=shorter
# expect: trainer.default_local_dir=runs/first
# expect: trainer.total_training_steps=60
from datasets import load_dataset
from trl import GRPOConfig as Settings
import trl


def shorter(completions, **kwargs):
    return [-float(len(text)) for text in completions]


if __name__ == "__main__":
    rows = load_dataset("team/sums", "hard", split="train")
    settings = Settings(
        "runs/first",
        learning_rate=3e-6,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2 * 2,
        num_generations=4,
        max_completion_length=1 << 7,
        max_steps=60,
        beta=0.02,
    )
    trl.GRPOTrainer("team/start-1b", shorter, args=settings, train_dataset=rows).train()
