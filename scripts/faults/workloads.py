"""The runs that are disturbed: one row for each pipeline."""
import dataclasses

STEPS = 3
SAVED = ["trainer.test_freq=1", "trainer.save_freq=1", "trainer.logger=[file]"]
ARITHMETIC = "val-core/burnish/arithmetic/acc/mean@1"
CALCULATOR = "val-core/burnish/calculator/acc/mean@1"
ACTOR = "actor_rollout_ref.actor"
RL = [
    "data.train_batch_size=4", "actor_rollout_ref.rollout.n=4", f"{ACTOR}.ppo_mini_batch_size=2", f"{ACTOR}.ppo_micro_batch_size_per_gpu=8",
    f"{ACTOR}.shuffle=true", f"{ACTOR}.optim.lr_scheduler_type=constant", "trainer.val_before_train=false", *SAVED,
]
SUMS = ["--config", "ppo_trainer.yaml", "data.val_max_samples=64", f"trainer.metric_for_best_model={ARITHMETIC}", *RL]
CRITIC = [
    "algorithm.use_kl_in_reward=true", "algorithm.kl_ctrl.type=adaptive", "algorithm.kl_ctrl.kl_coef=0.05",
    "algorithm.adv_estimator=gae", "critic.optim.lr=1e-3", "critic.optim.lr_scheduler_type=constant",
]
# A small model of the family, whose conversations have calls of a tool in another process.
AGENTS = [
    "--config", "recipes/calculator/grpo.yaml", "data.train_max_samples=64", "data.val_max_samples=32", *RL, f"{ACTOR}.optim.lr=5e-4",
    f"trainer.metric_for_best_model={CALCULATOR}", "actor_rollout_ref.rollout.multi_turn.tool_config_path=null",
    "actor_rollout_ref.rollout.agent.functions_path=scripts/faults/calculator.py", "actor_rollout_ref.rollout.agent.functions=[calculator]",
]
# With a schedule that depends on the length, a resumed run, which may be longer than the one before, would differ from a whole one.
STAGE = ["optim.lr_scheduler_type=constant", "data.train_batch_size=4", "data.micro_batch_size_per_gpu=2", "data.val_max_samples=32", *SAVED]
SMALL = [*STAGE, "data.train_max_samples=64"]


@dataclasses.dataclass
class Workload:
    """A run: its name on the page, its settings, the metric by which a checkpoint is the best, and its phases."""
    words: str
    settings: list
    metric: str | None
    phases: list

    @property
    def file(self):
        """A file of every checkpoint."""
        return "actor/optim.safetensors" if self.metric else "optim.safetensors"

    @property
    def timeout(self):
        """The setting that limits the wait for a silent rank."""
        return "actor_rollout_ref.nccl_timeout" if self.metric else "trainer.nccl_timeout"


END = ["testing", "save_checkpoint"]
UPDATE = ["update", *END]
WORKLOADS = {
    "ppo": Workload("PPO with a critic", [*SUMS, *CRITIC], ARITHMETIC,
                    ["gen", "reward", "old_log_prob", "ref", "values", "adv", "update_critic", "update_actor", *END]),
    "lora": Workload("RLOO with LoRA", [*SUMS, "actor_rollout_ref.model.lora_rank=4", f"{ACTOR}.optim.lr=5e-3"], ARITHMETIC,
                     ["gen", "reward", "adv", "update_actor", *END]),
    "agents": Workload("agents", AGENTS, CALCULATOR, ["gen", "reward", "old_log_prob", "adv", "update_actor", *END]),
    "sft": Workload("SFT", ["sft", "--config", "sft_trainer.yaml", *STAGE, "optim.lr=1e-4"], None, UPDATE),
    "sft-lora": Workload("SFT with LoRA", ["sft", "--config", "sft_trainer.yaml", *STAGE, "optim.lr=1e-3", "model.lora_rank=2"], None, UPDATE),
    "dpo": Workload("DPO", ["dpo", "--config", "dpo_trainer.yaml", *SMALL, "optim.lr=1e-4"], None, UPDATE),
    "rm": Workload("a reward model", ["rm", "--config", "rm_trainer.yaml", *SMALL, "optim.lr=1e-3"], None, UPDATE),
    "distill": Workload("distillation", ["distill", "--config", "distill_trainer.yaml", *SMALL, "optim.lr=1e-4"], None, UPDATE),
}
