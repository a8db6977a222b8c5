# Modules that files written for verl import, for when verl itself is not installed: the registration of advantage estimators and
# policy losses, the aggregation of a loss, and arithmetic on masked columns. All but the aggregation work on torch tensors and NumPy
# arrays.

import sys
from enum import Enum

CORE = "verl.trainer.ppo.core_algos"
ESTIMATORS = """
    gae grpo reinforce_plus_plus reinforce_plus_plus_baseline remax rloo opo grpo_passk gpg rloo_vectorized grpo_vectorized
    optimal_token_baseline tir_optimal_token_baseline gdpo
"""


class Settings(dict):
    """A section of settings, read by attribute, by item or by `get`."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError("these settings have no %s; they have %s" % (name, ", ".join(self)))

    @classmethod
    def of(cls, value):
        if isinstance(value, dict):
            return cls((key, cls.of(item)) for key, item in value.items())
        if isinstance(value, list):
            return [cls.of(item) for item in value]
        return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


class AlgorithmSettings(Settings):
    """The section of the algorithm, verl's AlgoConfig."""


class ActorSettings(Settings):
    """The section of the actor, verl's ActorConfig. It is not an AlgoConfig, which losses written for verl refuse."""


def masked_sum(values, mask, axis=None):
    library = sys.modules["torch" if hasattr(values, "detach") else "numpy"]
    return (library.where(mask != 0, values, 0.0) * mask).sum(axis=axis)  # what is not masked may be NaN


def masked_mean(values, mask, axis=None):
    return masked_sum(values, mask, axis) / (mask.sum(axis=axis) + 1e-8)


def masked_var(values, mask, unbiased=True):
    variance = masked_mean((values - masked_mean(values, mask)) ** 2, mask)
    count = mask.sum()
    if unbiased and count < 2:
        raise ValueError("the variance of %d masked values is not defined" % int(count))
    return variance * (count / (count - 1)) if unbiased else variance


def masked_whiten(values, mask, shift_mean=True):
    mean, variance = masked_mean(values, mask), masked_var(values, mask)
    whitened = (values - mean) / (variance + 1e-8) ** 0.5
    return whitened if shift_mean else whitened + mean


def agg_loss(
    loss_mat, loss_mask, loss_agg_mode, dp_size=1, batch_num_tokens=None, global_batch_size=None, loss_scale_factor=None
):
    """Returns the part of a micro-batch in the loss of its mini-batch, from verl's definition of the modes."""
    of_response = masked_sum(loss_mat, loss_mask, -1)
    lengths = loss_mask.sum(-1)
    if loss_agg_mode in ("token-mean", "token-sum"):
        tokens = lengths.sum() if batch_num_tokens is None else batch_num_tokens
        return of_response.sum() * dp_size / (tokens if loss_agg_mode == "token-mean" else 1)
    responses = (lengths > 0).sum() if global_batch_size is None else global_batch_size
    divisors = {
        "seq-mean-token-sum": 1,
        "seq-mean-token-mean": lengths + 1e-8,
        "seq-mean-token-sum-norm": loss_mask.shape[-1] if loss_scale_factor is None else loss_scale_factor,
    }
    if loss_agg_mode not in divisors:
        raise ValueError("loss_agg_mode %r is not known; known are token-mean, token-sum, %s" % (loss_agg_mode, ", ".join(divisors)))
    return (of_response / divisors[loss_agg_mode]).sum() * dp_size / responses


def registration(registry):
    """Returns a decorator that takes a name and registers a function under it."""

    def register(name):
        def registered(function):
            key = name.value if isinstance(name, Enum) else name
            if registry.setdefault(key, function) is not function:
                raise ValueError("%s is registered twice: %s and %s" % (key, registry[key], function))
            return function

        return registered

    return register


class MissingOfVerl:
    """Names modules of verl that have no substitute."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("verl."):
            text = "%s is missing: verl is not installed for %s, and there is no substitute for this module; there are %s"
            provided = sorted(key for key in sys.modules if key.startswith("verl."))
            raise ModuleNotFoundError(text % (name, sys.executable, ", ".join(provided)), name=name)


def stand_in_for_verl():
    """Provides modules of verl and omegaconf if they are neither installed nor in the working folder."""
    sys.path.insert(0, os.getcwd())
    if not is_installed("omegaconf"):
        provide("omegaconf", DictConfig=Settings)
    if is_installed("verl"):
        return
    functions = dict(masked_sum=masked_sum, masked_mean=masked_mean, masked_var=masked_var, masked_whiten=masked_whiten)
    estimators, losses = {}, {}
    for package in ("verl", "verl.trainer", "verl.trainer.ppo", "verl.utils", "verl.workers"):
        provide(package)
    provide("verl.trainer.config", AlgoConfig=AlgorithmSettings)
    provide("verl.workers.config", ActorConfig=ActorSettings)
    provide("verl.utils.torch_functional", **functions)
    provide(
        CORE,
        AdvantageEstimator=Enum("AdvantageEstimator", [(n.upper(), n) for n in ESTIMATORS.split()], type=str, module=CORE),
        ADV_ESTIMATOR_REGISTRY=estimators,
        register_adv_est=registration(estimators),
        POLICY_LOSS_REGISTRY=losses,
        register_policy_loss=registration(losses),
        agg_loss=agg_loss,
        verl_F=sys.modules["verl.utils.torch_functional"],
    )
    provide_scorers()
    sys.meta_path.append(MissingOfVerl)


def registered(registry):
    """Returns the functions in a registry of verl, by name; includes verl's own if verl is installed and imported."""
    return dict(getattr(sys.modules.get(CORE), registry, {}))
