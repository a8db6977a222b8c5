"""An estimator that does as it should until a file appears, which the environment names; from then on it does not."""

import os
import time


def own(token_level_rewards, response_mask, config=None, **kwargs):
    does, since = os.environ["DOES"], os.environ["SINCE"]
    if os.path.exists(since):
        return globals()[does](token_level_rewards)
    return token_level_rewards.sum(-1)[:, None] * response_mask, token_level_rewards


def nothing(rewards):
    return rewards, rewards


def raises(rewards):
    return {}["missing key"]


def hangs(rewards):
    time.sleep(600)


def exits(rewards):
    os._exit(7)


def not_a_number(rewards):
    return rewards * float("nan"), rewards


def another_shape(rewards):
    return rewards[:, :1], rewards
