# Styles in which reward functions are called, recognised by the names of their parameters.

import dis
import inspect
from types import SimpleNamespace

KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
VERL = ("data_source", "solution_str", "ground_truth", "extra_info")
VERL_BATCH = ("data_sources", "solution_strs", "ground_truths", "extra_infos")
TRL = ("prompts", "completions", "completion_ids")
TRL_SERVICES = ("trainer_state", "log_extra", "log_metric")
OPENRLHF = ("queries", "prompts", "labels")
EXPECTED = """
  verl:          compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs)
  verl's batch:  compute_score(data_sources, solution_strs, ground_truths, extra_infos, **kwargs)
  TRL:           any_name(prompts, completions, completion_ids, **columns)
  OpenRLHF:      reward_func(queries, prompts, labels, **kwargs)"""


class Missing(Exception):
    """A name that the file does not have."""

    def __init__(self, name, functions):
        super().__init__(name)
        self.name = name
        self.functions = functions


class Callee:
    """A function, its style, and the arguments that it always gets."""

    def __init__(self, name, function, style, parameters=(), kwargs=None):
        self.name = name
        self.function = function
        self.style = style
        self.kwargs = kwargs or {}
        self.names = [p.name for p in parameters if p.kind in KEYWORD]
        self.required = [p.name for p in parameters if p.default is p.empty and p.kind in KEYWORD]
        self.takes_any = style == "plain" or any(p.kind == p.VAR_KEYWORD for p in parameters)

    def columns(self):
        """Returns the arguments that the function takes; `None` for any."""
        return None if self.takes_any else self.names

    def wants(self):
        """Returns the columns of the data set that the function requires."""
        own = TRL + TRL_SERVICES if self.style == "trl" else self.required
        return [name for name in self.required if name not in own and name not in self.kwargs]

    def reads(self):
        """Returns the parts of a row that the function's code uses: `data_source`, `ground_truth`."""
        passed = {"verl": VERL, "verl_positional": VERL, "verl_batch": VERL_BATCH, "openrlhf": OPENRLHF}.get(self.style, ())
        parts = {"data_source": "data_source", "ground_truth": "ground_truth", "labels": "ground_truth"}
        parts.update(data_sources="data_source", ground_truths="ground_truth")
        by_position = self.style in ("verl_positional", "openrlhf")
        return sorted({parts[name] for at, name in enumerate(passed) if name in parts and uses(self.function, name, at if by_position else None)})

    def keywords(self, given):
        """Returns the keyword arguments of one call, without those that the function does not take (often `extra_info`)."""
        given = dict(given, **self.kwargs)
        return given if self.takes_any else {name: given[name] for name in self.names if name in given}

    def __call__(self, *args, **kwargs):
        result = self.function(*args, **kwargs)
        return wait(result) if inspect.isawaitable(result) else result


def uses(function, name, position):
    """Returns true if the code of a function may use the argument of this name, or at this position. An argument that the code never
    loads is not used. Functions without code of their own, and those behind a decorator, may use all."""
    if not inspect.isfunction(function) or hasattr(function, "__wrapped__"):
        return True
    kinds = [(p.name, p.kind) for p in inspect.signature(function).parameters.values()]
    if position is None:
        own, catch_all = [own for own, kind in kinds if kind in KEYWORD and own == name], inspect.Parameter.VAR_KEYWORD
    else:
        own, catch_all = [own for own, kind in kinds if kind in POSITIONAL][position: position + 1], inspect.Parameter.VAR_POSITIONAL
    wanted = set(own[:1] or [own for own, kind in kinds if kind == catch_all])
    code = function.__code__
    if not wanted or {"locals", "vars", "eval", "exec"} & set(code.co_names) or wanted & set(code.co_cellvars):
        return bool(wanted)
    loads = (step.argval for step in dis.get_instructions(code) if "LOAD" in step.opname)
    return any(wanted & set(value if isinstance(value, tuple) else (value,)) for value in loads if isinstance(value, (str, tuple)))


def wait(result):
    """Returns the result of an async function. All calls share one loop, because a session of an HTTP client belongs to its loop."""
    import asyncio

    if not hasattr(wait, "loop"):
        wait.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(wait.loop)

    async def finish():
        return await result

    return wait.loop.run_until_complete(finish())


def recognise(name, function, kwargs, positional):
    """Returns the function as a callee; raises `Unusable` if it cannot be called with the available arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise Unusable("the parameters of %s cannot be read: %s" % (name, error))
    parameters = list(signature.parameters.values())
    style = style_of(parameters, positional)
    title = "%s%s" % (name, signature)
    if style is None:
        raise Unusable("the parameters of %s fit no known style; reward functions look like%s" % (title, EXPECTED))
    callee = Callee(name, function, style, parameters, kwargs)
    unknown = [key for key in kwargs if not callee.takes_any and key not in callee.names]
    if unknown:
        raise Unusable("%s does not take %s from custom_reward_function.reward_kwargs" % (title, ", ".join(unknown)))
    if style == "trl":
        return callee  # what else it requires may be columns of the data set
    if style in ("verl", "verl_batch"):
        given = VERL if style == "verl" else VERL_BATCH
        lacking = [key for key in callee.required if key not in given and key not in kwargs]
        lacking += [p.name for p in parameters if p.kind == p.POSITIONAL_ONLY and p.default is p.empty]
        if lacking:
            text = "%s requires %s, which is not passed to it: available are %s, and the arguments in custom_reward_function.reward_kwargs"
            raise Unusable(text % (title, ", ".join(lacking), ", ".join(given)))
        return callee
    try:
        signature.bind(*(VERL if style == "verl_positional" else OPENRLHF), **kwargs)
    except TypeError as error:
        order = "data_source, solution_str, ground_truth, extra_info" if style == "verl_positional" else "queries, prompts, labels"
        raise Unusable("%s cannot be called with (%s): %s" % (title, order, error))
    return callee


def style_of(parameters, positional):
    names = {p.name for p in parameters}
    if "queries" in names:
        return "openrlhf"
    if names & {"completions", "completion_ids"}:
        return "trl"
    if {"prompts", "labels"} <= names:
        return "openrlhf"
    if names & set(VERL_BATCH):
        return "verl_batch"
    if positional and (len(names) >= 3 or any(p.kind == p.VAR_POSITIONAL for p in parameters)):
        return "verl_positional"
    if names & set(VERL):
        return "verl"
    if "prompts" in names:
        return "trl"
    if any(p.kind == p.VAR_KEYWORD for p in parameters) and all(p.default is not p.empty or p.kind not in POSITIONAL for p in parameters):
        return "verl"
    return None


def verl(callee, arguments):
    """Scores one response, by keyword arguments."""
    given = dict(arguments, extra_info=with_rollout(arguments["extra_info"], arguments.pop("rollout", None), num_turns=2))
    return {"scores": [verl_score(callee.name, callee(**callee.keywords(given)))]}


def verl_positional(callee, arguments):
    """Scores one response, by positional arguments as in verl's prime manager."""
    if "rollout" in arguments:
        arguments["extra_info"] = with_rollout(arguments["extra_info"], arguments.pop("rollout"))
    return {"scores": [verl_score(callee.name, callee(*[arguments[key] for key in VERL], **callee.kwargs))]}


def verl_batch(callee, arguments):
    """Scores all responses at once, like verl's batch manager."""
    rollouts = arguments.pop("rollouts", None) or [None] * len(arguments["extra_infos"])
    given = dict(arguments, extra_infos=[with_rollout(*pair) for pair in zip(arguments["extra_infos"], rollouts)])
    results = listed(callee.name, callee(**callee.keywords(given)), len(given["solution_strs"]))
    return {"scores": [verl_score(callee.name, result, index) for index, result in enumerate(results)]}


def with_rollout(extra_info, rollout=None, **more):
    """Adds the values that verl adds to `extra_info`: empty rollout scores, and for one response two turns (user and model). For a
    multi-turn conversation (`rollout`): the values of its loop and tools, the number of turns, the rewards of tools and turns, and the messages."""
    if not (extra_info is None or isinstance(extra_info, dict)):
        return extra_info
    given = dict(extra_info or {})
    if rollout is None:
        return dict(given, rollout_reward_scores={}, **more)
    given.setdefault("messages", rollout["messages"])
    given.update(rollout["extra"])
    given.setdefault("rollout_reward_scores", {})
    given.update({name: rollout[name] for name in ("num_turns", "tool_rewards", "turn_scores")})
    return given


def trl(callee, arguments):
    """Scores all responses at once; every column of the data set is a list."""
    prompts, completions, columns = arguments["prompts"], arguments["completions"], arguments["columns"]
    count = len(completions)
    extra, metrics = {}, {}

    def log_extra(column, values):
        extra[str(column)] = listed("log_extra(%r, …)" % column, values, count)

    def log_metric(name, value):
        if number(value) is None:
            raise Unusable("log_metric(%r, …) needs a number, not %s" % (name, shown(value)))
        metrics.setdefault(str(name), []).append(number(value))

    given = dict(
        columns,
        prompts=prompts,
        completions=[
            text if isinstance(prompt, str) or isinstance(text, list) else [{"role": "assistant", "content": text}]
            for prompt, text in zip(prompts, completions)
        ],
        completion_ids=arguments["completion_ids"],
        trainer_state=SimpleNamespace(global_step=arguments["step"]),
        log_extra=log_extra,
        log_metric=log_metric,
    )
    keywords = callee.keywords(given)
    lacking = [name for name in callee.required if name not in keywords]
    if lacking:
        have = ", ".join(arguments["all_columns"])
        raise Unusable("%s requires %s, which is not a column of the data set: it has %s" % (callee.name, ", ".join(lacking), have))
    results = listed(callee.name, callee(**keywords), count)
    averages = {name: sum(values) / len(values) for name, values in metrics.items()}
    return {
        "scores": [
            trl_score(callee.name, result, index, averages, {name: values[index] for name, values in extra.items()})
            for index, result in enumerate(results)
        ]
    }


def openrlhf(callee, arguments):
    """Scores one response, by positional lists of one item each."""
    return {"scores": [openrlhf_score(callee.name, callee(*[arguments[key] for key in OPENRLHF], **callee.kwargs))]}


def plain(callee, arguments):
    """Calls built-in code with any JSON, and returns any JSON."""
    return {"value": note(callee(**arguments))}


CALLS = {
    "verl": verl,
    "verl_positional": verl_positional,
    "verl_batch": verl_batch,
    "trl": trl,
    "openrlhf": openrlhf,
    "plain": plain,
}
