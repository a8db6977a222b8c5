"""Policy losses as they are written for verl, from their formulas. The first runs on torch, the others return their own gradient and
run on NumPy too."""

from verl.trainer.config import AlgoConfig
from verl.trainer.ppo.core_algos import agg_loss, register_policy_loss


@register_policy_loss("own_gpg")
def gpg(old_log_prob, log_prob, advantages, response_mask, loss_agg_mode="token-mean", config=None, rollout_is_weights=None):
    assert not isinstance(config, AlgoConfig)
    losses = -log_prob * advantages
    if rollout_is_weights is not None:
        losses = losses * rollout_is_weights
    loss = agg_loss(loss_mat=losses, loss_mask=response_mask, loss_agg_mode=loss_agg_mode, **config.global_batch_info)
    return loss, {"actor/mean_log_prob": (log_prob * response_mask).sum() / response_mask.sum()}


def token_weights(response_mask, mode, config):
    """The weight of each token: the aggregation of a loss that is 1 at this token."""
    weights = response_mask * 0
    for place in range(response_mask.shape[0] * response_mask.shape[1]):
        i, t = divmod(place, response_mask.shape[1])
        one = response_mask * 0
        one[i, t] = response_mask[i, t]
        weights[i, t] = agg_loss(loss_mat=one, loss_mask=response_mask, loss_agg_mode=mode, **config.global_batch_info)
    return weights


@register_policy_loss("gpg_by_hand")
def gpg_by_hand(log_prob, advantages, response_mask, loss_agg_mode, config, rollout_is_weights=None, **kwargs):
    weights = token_weights(response_mask, loss_agg_mode, config) * (1 if rollout_is_weights is None else rollout_is_weights)
    loss = (-log_prob * advantages * weights).sum()
    return loss, {"actor/clip": config.clip_ratio}, -advantages * weights


def entropy_by_hand(entropy, response_mask):
    return -0.5 * (entropy * response_mask).sum(), {}, {"entropy": -0.5 * response_mask}
