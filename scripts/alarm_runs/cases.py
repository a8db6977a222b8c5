"""The runs that `scripts/alarms` makes: faults in three strengths, and sound runs of the shipped recipes."""
import collections

Fault = collections.namedtuple("Fault", "alarm what strengths words")

RECORD = ["trainer.save_freq=null", "trainer.logger=[file]", "trainer.resume_mode=disable"]
TASK = ["--config", "arithmetic/first.yaml", "data.train_batch_size=32", "actor_rollout_ref.actor.ppo_mini_batch_size=32",
        "trainer.val_before_train=false", "trainer.test_freq=-1", "trainer.total_training_steps=40"]
FAST = ["actor_rollout_ref.actor.optim.lr=1e-3", "actor_rollout_ref.actor.optim.lr_scheduler_type=constant"]
KL = ["actor_rollout_ref.actor.use_kl_loss=true", "actor_rollout_ref.actor.ppo_epochs=4"]


def reward(name):
    return ["custom_reward_function.path=scripts/alarm_runs/rewards.py", f"custom_reward_function.name={name}",
            "reward.num_workers=1", "reward.pass_env=[FAULT]"]


# Each strength is (what a reader sees, the value of FAULT, further words), the weakest first.
FAULTS = [
    Fault("constant reward", "the reward gives a default", [
        ("from step 9 on", "late", []), ("1 for every text", "not_empty", []), ("0.7 always", "always", [])],
        [*TASK, *reward("constant")]),
    Fault("no signal", "the score depends on the prompt alone", [
        ("but for 2 % of prompts", "0.02", []), ("but for 1 %", "0.01", []), ("always", "0", [])],
        [*TASK, *reward("of_the_prompt")]),
    Fault("responses cut", "responses do not end", [
        ("limit of 2 tokens", "", ["data.max_response_length=2"]), ("limit of 1 token", "", ["data.max_response_length=1"]),
        ("ignore_eos", "", ["actor_rollout_ref.rollout.ignore_eos=true"])],
        [*TASK, *reward("sound")]),
    Fault("NaN", "from step 24 on, one score in 256 is far too large", [
        ("1e3", "1e3", []), ("1e6", "1e6", []), ("1e38, updates skipped", "1e38", ["trainer.on_nonfinite=skip"])],
        [*TASK, *reward("outlier")]),
    Fault("KL", "the KL term has the wrong sign", [
        ("-0.3", "", ["actor_rollout_ref.actor.kl_loss_coef=-0.3"]), ("-0.5", "", ["actor_rollout_ref.actor.kl_loss_coef=-0.5"]),
        ("-1", "", ["actor_rollout_ref.actor.kl_loss_coef=-1.0"])],
        [*TASK, *KL, *reward("sound")]),
    Fault("score against accuracy", "the reward pays for different digits", [
        ("a share of 0.7", "0.7", []), ("0.85", "0.85", []), ("1", "1", [])],
        [*TASK, *FAST, "data.max_response_length=12", "trainer.total_training_steps=48", *reward("digits")]),
]

# Sound runs: every shipped recipe that needs no download, with fewer steps where it is long.
SOUND = {
    "first": ["--config", "recipes/arithmetic/first.yaml", "trainer.total_training_steps=40"],
    "dapo": ["--config", "recipes/arithmetic/dapo.yaml", "trainer.total_training_steps=32"],
    "ppo": ["--config", "recipes/arithmetic/ppo.yaml", "trainer.total_training_steps=48"],
    "online_dpo": ["--config", "recipes/arithmetic/online_dpo.yaml", "trainer.total_training_steps=24"],
    "rloo_trl": ["--config", "recipes/arithmetic/rloo_trl.yaml", "trainer.total_training_steps=48"],
    "reward_model": ["--config", "recipes/arithmetic/reward_model.yaml", "trainer.total_training_steps=32"],
    "random_reward_model": ["--config", "recipes/arithmetic/random_reward_model.yaml"],
    "sft": ["sft", "--config", "recipes/arithmetic/sft.yaml", "trainer.total_training_steps=120"],
    "dpo": ["dpo", "--config", "recipes/arithmetic/dpo.yaml", "trainer.total_training_steps=96"],
    "rm": ["rm", "--config", "recipes/arithmetic/rm.yaml", "trainer.total_training_steps=96"],
    "prm": ["rm", "--config", "recipes/arithmetic/prm.yaml", "trainer.total_training_steps=96"],
    "distill": ["distill", "--config", "recipes/arithmetic/distill.yaml", "trainer.total_training_steps=80"],
    "calculator": ["--config", "recipes/calculator/grpo.yaml", "trainer.total_training_steps=24"],
    "calculator_sft": ["sft", "--config", "recipes/calculator/sft.yaml", "trainer.total_training_steps=150"],
}


def seeded(seed):
    return [f"trainer.seed={seed}", f"data.seed={seed}"]
