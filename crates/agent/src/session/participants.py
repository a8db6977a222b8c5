# The environments and users of a conversation: TRL's environments, verl's interactions, and OpenRLHF's agent instances.

from types import SimpleNamespace


def text_of(result, what):
    """Returns the text of a participant's result: a string, or the text of a list of content parts; other results as `str` writes them."""
    parts = isinstance(result, list) and all(isinstance(part, dict) and "type" in part for part in result)
    if not parts:
        return result if isinstance(result, str) else str(result)
    if any(part["type"] != "text" for part in result):
        raise Unusable("%s returned %s: only text is supported" % (what, ", ".join(sorted({part["type"] for part in result}))))
    return "".join(str(part.get("text", "")) for part in result)


def measure(value, what):
    """Returns the number of a reward or score, or `None`."""
    if value is None:
        return None
    if hasattr(value, "item") and not isinstance(value, (int, float)):
        value = value.item()
    found = number(value)
    if found is None:
        raise Unusable("%s is not a number: it is %s" % (what, shown(value)))
    return wire(found)


def methods_of(made):
    """Returns the names of an environment's methods that are tools."""
    names = [name for name, _ in inspect.getmembers(made, predicate=inspect.isfunction)]
    return [name for name in names if name not in ("reset", "get_reward") and not name.startswith("_")]


def current_environment():
    if STATE.environment is None:
        raise Unusable("its environment has not begun an episode, or was lost with its process")
    return STATE.environment


def reset_environment(environment, row):
    """Begins an episode of TRL's environment with this name; all columns of the row are arguments of `reset`."""
    if environment not in HOST.environments:
        there = ", ".join(map(str, HOST.environments)) or "none"
        raise Unusable("there is no environment %s; there are %s" % (environment, there))
    instance = HOST.environments[environment].factory()
    if environment is not None:
        row = {key: value for key, value in row.items() if key != "environment"}
    observation = finished(instance.reset(**row))
    STATE.environment, STATE.environment_name = instance, environment
    return {"text": None if observation is None else text_of(observation, "reset")}


def environment_reward():
    """Returns the reward of TRL's environment at the end of an episode; `None` if it gives none."""
    instance = current_environment()
    if not hasattr(instance, "get_reward"):
        return {"reward": None}
    return {"reward": measure(finished(instance.get_reward()), "the reward of %s" % type(instance).__name__)}


def respond(name, kwargs, seen, request_id):
    """Returns the reply of verl's interaction to the conversation so far."""
    if name not in HOST.interactions:
        there = ", ".join(HOST.interactions) or "none"
        raise Unusable("there is no interaction %s; there are %s" % (name, there))
    interaction = HOST.interactions[name]
    if name not in STATE.interactions:
        finished(interaction.start_interaction(request_id, **kwargs))
        STATE.interactions.add(name)
    result = finished(interaction.generate_response(request_id, seen["messages"], **kwargs))
    if not isinstance(result, tuple) or not 3 <= len(result) <= 4:
        text = "generate_response of %s returned %s: return (whether to end, a text, a score, a dict)"
        raise Unusable(text % (name, shown(result)))
    ends, text, score = result[:3]
    if text is not None and not isinstance(text, str):
        raise Unusable("generate_response of %s must return a text as its second value, not %s" % (name, shown(text)))
    if ends:
        STATE.interactions.discard(name)
        try:
            finished(interaction.finalize_interaction(request_id, **kwargs))
        except Exception as error:
            sys.stderr.write("finalize_interaction of %s failed: %s\n" % (name, error))
    return {"ends": bool(ends), "text": text or "", "score": measure(score, "the score of %s" % name)}


def reset_agent(observation, label):
    """Begins an episode of OpenRLHF's agent."""
    STATE.agent, STATE.label = HOST.agent(), label
    result = finished(STATE.agent.reset({"observation": observation, "label": label}))
    text = result.get("observation") if isinstance(result, dict) else result
    if not isinstance(text, str):
        raise Unusable('reset of %s returned %s: return {"observation": a text}' % (type(STATE.agent).__name__, shown(result)))
    return {"observation": text}


def step_agent(observation, action, sampling_params):
    """Runs a step of OpenRLHF's agent."""
    if STATE.agent is None:
        raise Unusable("its episode has not begun, or was lost with its process")
    name = "step of %s" % type(STATE.agent).__name__
    parameters = SimpleNamespace(**sampling_params)
    state = {"observation_text": observation, "action_text": action, "label": STATE.label, "sampling_params": parameters}
    result = finished(STATE.agent.step(state))
    lacking = [key for key in ("rewards", "environment_feedback", "done") if not isinstance(result, dict) or key not in result]
    if lacking:
        raise Unusable("%s returned %s: %s is missing" % (name, shown(result), ", ".join(lacking)))
    if not isinstance(result["environment_feedback"], str):
        raise Unusable("the environment_feedback of %s is not text: %s" % (name, shown(result["environment_feedback"])))
    if result.get("environment_images"):
        raise Unusable("%s returned images: only text is supported" % name)
    reward = measure(result["rewards"], "the reward of %s" % name)
    if reward is None:
        raise Unusable("the reward of %s is None" % name)
    logs = {str(key): measure(value, "extra_logs[%r]" % key) for key, value in (result.get("extra_logs") or {}).items()}
    changed = result.get("sampling_params") or parameters
    return {
        "reward": reward,
        "score": measure(result.get("scores"), "the score of %s" % name),
        "feedback": result["environment_feedback"],
        "done": bool(opened(result["done"])),
        "max_tokens": getattr(changed, "max_tokens", None),
        "extra": {key: value for key, value in logs.items() if value is not None},
    }
