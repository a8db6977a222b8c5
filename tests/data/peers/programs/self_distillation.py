# expect: actor_rollout_ref.model.path=team/start-1b
# expect: distillation.sdpo.enable=true
# expect: distillation.teacher_model_kind=live
# expect: distillation.distillation_loss.distillation_loss_coef=1.0
# expect: actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean
# expect: custom_reward_function.name=shorter
# note: the norm of its gradient
from datasets import load_dataset
from trl.experimental.sdpo import SDPOConfig, SDPOTrainer


def shorter(completions, **kwargs):
    return [-float(len(text)) for text in completions]


settings = SDPOConfig(teacher_model_kind="live", distillation_weight=0.5, loss_type="grpo")
SDPOTrainer("team/start-1b", shorter, settings, load_dataset("team/sums", split="train")).train()
