# Converts the results of reward functions to [score | null, {extra: number}, pred | null, {note: anything}].

import json
from collections.abc import Mapping


def first(value):
    """Returns the number of a result: itself or, as in verl's prime manager, its first item."""
    value = opened(value)
    while isinstance(value, (list, tuple)) and value:
        value = opened(value[0])
    return number(value)


def sort_out(items, extras, notes):
    """Adds numbers to the extras, and all other values to the notes."""
    for key, value in items:
        amount = None if isinstance(value, (list, tuple)) else number(value)
        if amount is None:
            notes[str(key)] = note(value)
        else:
            extras[str(key)] = wire(amount)


def at(index):
    return "" if index is None else " for response %d" % index


def verl_score(name, result, index=None):
    if result is None:
        text = '%s returned None%s: return a number, or {"score": None} to leave the response out'
        raise Unusable(text % (name, at(index)))
    if not isinstance(result, Mapping):
        score = first(result)
        if score is None:
            text = '%s returned %s%s: return a number, or a dict with "score"'
            raise Unusable(text % (name, shown(result), at(index)))
        return [wire(score), {"acc": wire(score)}, None, {}]
    if "score" not in result:
        keys = ", ".join(map(repr, result)) or "no keys"
        raise Unusable('%s returned a dict without "score"%s; it has %s' % (name, at(index), keys))
    score = first(result["score"])
    if score is None and result["score"] is not None:
        raise Unusable('%s returned a dict whose "score" is not a number%s: %s' % (name, at(index), shown(result["score"])))
    extras, notes = {}, {}
    pred = result.get("pred")
    sort_out(((key, value) for key, value in result.items() if key not in ("score", "pred")), extras, notes)
    return [wire(score), extras, pred if pred is None or isinstance(pred, str) else json.dumps(note(pred)), notes]


def trl_score(name, result, index, metrics, extra):
    score = number(result)
    if score is None and result is not None:
        raise Unusable("%s returned %s%s: return a list of numbers, with None to leave one out" % (name, shown(result), at(index)))
    extras, notes = {}, {}
    sort_out(metrics.items(), extras, notes)
    sort_out(extra.items(), extras, notes)
    return [wire(score), extras, None, notes]


def openrlhf_score(name, result):
    extras, notes, rewards = {}, {}, result
    if isinstance(result, Mapping):
        if result.get("rewards") is None:
            keys = ", ".join(map(repr, result)) or "no keys"
            raise Unusable('%s returned a dict without "rewards"; it has %s' % (name, keys))
        rewards = result["rewards"]
        scores = result.get("scores")
        named = [] if scores is None else [("scores", scores)]
        for key, value in named + list((result.get("extra_logs") or {}).items()):
            # Each value is a list of one item, like the rewards.
            value = opened(value)
            sort_out([(key, value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value)], extras, notes)
    rewards = opened(rewards)
    score = number(listed(name, rewards, 1)[0] if isinstance(rewards, (list, tuple)) else rewards)
    if score is None:
        raise Unusable('%s returned %s: return {"rewards": a number for each query}' % (name, shown(result)))
    return [wire(score), extras, None, notes]


def listed(name, results, count):
    """Returns the results as a list, which must have one item per response."""
    results = opened(results)
    if isinstance(results, (str, bytes, Mapping)) or not hasattr(results, "__iter__"):
        raise Unusable("%s returned %s: return a list of %d, one for each response" % (name, shown(results), count))
    results = list(results)
    if len(results) != count:
        raise Unusable("%s returned %d results for %d responses" % (name, len(results), count))
    return results
