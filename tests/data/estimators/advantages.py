"""Advantage estimators as they are written for verl, from their formulas. They work on tensors of torch and on arrays of NumPy."""

from collections import defaultdict
from typing import Optional

import verl.utils.torch_functional as verl_F
from verl.trainer.config import AlgoConfig
from verl.trainer.ppo.core_algos import AdvantageEstimator, register_adv_est


def members(index):
    groups = defaultdict(list)
    for i, uid in enumerate(index):
        groups[uid].append(i)
    return groups.values()


def rewards_to_go(rewards, mask, gamma):
    returns, running = rewards * 0, 0
    for t in reversed(range(rewards.shape[1])):
        running = mask[:, t] * (rewards[:, t] + gamma * running) + (1 - mask[:, t]) * running
        returns[:, t] = running
    return returns


def spread(scores, mask):
    advantages = scores[:, None] * mask
    return advantages, advantages


@register_adv_est("own_grpo")
def grpo(token_level_rewards, response_mask, index, epsilon: float = 1e-6, config: Optional[AlgoConfig] = None, **kwargs):
    assert set(kwargs) <= {"reward_baselines"}, kwargs
    scores = token_level_rewards.sum(-1)
    advantages = scores * 0
    for group in members(index):
        own = scores[group]
        mean = own.mean() if len(group) > 1 else 0.0
        std = (((own - mean) ** 2).sum() / (len(group) - 1)) ** 0.5 if len(group) > 1 else 1.0
        scale = std + epsilon if config.norm_adv_by_std_in_grpo else 1.0
        advantages[group] = (own - mean) / scale
    return spread(advantages, response_mask)


@register_adv_est("own_rloo")
def rloo(token_level_rewards, response_mask, index, **kwargs):
    scores = token_level_rewards.sum(-1)
    advantages = scores * 1
    for group in members(index):
        if len(group) > 1:
            own = scores[group]
            advantages[group] = own - (own.sum() - own) / (len(group) - 1)
    return spread(advantages, response_mask)


@register_adv_est(AdvantageEstimator.OPO)
def opo(token_level_rewards, response_mask, index, config=None):
    scores, lengths = token_level_rewards.sum(-1), response_mask.sum(-1)
    advantages = scores * 0
    for group in members(index):
        own, weights = scores[group], lengths[group]
        baseline = (own * weights).sum() / weights.sum() if len(group) > 1 else 0.0
        advantages[group] = own - baseline
    return spread(advantages, response_mask)


@register_adv_est("own_reinforce_plus_plus")
def reinforce_plus_plus(token_level_rewards, response_mask, config=None, **kwargs):
    returns = rewards_to_go(token_level_rewards, response_mask, config.get("gamma", 1.0))
    return verl_F.masked_whiten(returns, response_mask) * response_mask, returns


def own_gae(token_level_rewards, values, response_mask, gamma, lam):
    advantages, running, following = values * 0, 0, 0
    for t in reversed(range(values.shape[1])):
        is_own = response_mask[:, t]
        error = token_level_rewards[:, t] + gamma * following - values[:, t]
        running = is_own * (error + gamma * lam * running) + (1 - is_own) * running
        following = is_own * values[:, t] + (1 - is_own) * following
        advantages[:, t] = running
    return verl_F.masked_whiten(advantages, response_mask), advantages + values


def own_remax(token_level_rewards, reward_baselines, response_mask, config=None, **kwargs):
    returns = rewards_to_go(token_level_rewards, response_mask, 1.0)
    return returns - reward_baselines[:, None] * response_mask, returns


def own_returns(token_level_scores, old_log_probs, sum_pi_squared, rollout_is_weights=None):
    """No estimator: what was passed, as it came."""
    assert rollout_is_weights is None
    return old_log_probs + token_level_scores, sum_pi_squared
