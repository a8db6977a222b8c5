# Functions that see a whole batch as columns: advantage estimators with verl's signature, and post-processing of scores.
# Columns of tokens arrive ragged: the values of one response after another. The function gets them padded with zeros to the
# longest
# response, [B, T], as torch tensors if torch is installed, and otherwise as NumPy arrays.

# Arguments that verl passes to every registered estimator.
VERL_PASSES = ("token_level_rewards", "response_mask", "config", "index", "reward_baselines")
# Columns that may be added to those; a function gets them if it has a parameter of that name.
COLUMNS = (
    "token_level_scores", "values", "old_log_probs", "rollout_log_probs", "ref_log_prob", "sum_pi_squared", "rollout_is_weights"
)


# Arguments that a function that processes scores may take.
PROCESSES = ("scores", "response_mask", "index", "lengths", "prompts", "responses", "ground_truths", "data_sources", "extras", "step", "config")


class Estimator(Callee):
    """An advantage estimator, and the arguments that it takes."""

    def __init__(self, name, function, config):
        parameters = list(inspect.signature(function).parameters.values())
        super().__init__(name, function, "estimator", parameters)
        self.config = config
        known = VERL_PASSES + COLUMNS
        # As in verl, arguments that are not passed keep the function's default values.
        self.settings = {key: config[key] for key in self.required if key in config and key not in known}
        lacking = [key for key in self.required if key not in known and key not in self.settings]
        lacking += [p.name for p in parameters if p.kind == p.POSITIONAL_ONLY and p.default is p.empty]
        if lacking:
            text = "%s%s requires %s, which is not passed to it: available are %s, and the settings of the section algorithm"
            raise Unusable(text % (name, inspect.signature(function), ", ".join(lacking), ", ".join(known)))
        self.takes = [key for key in known if key in self.names or self.takes_any and key in VERL_PASSES]

    def columns(self):
        return self.takes

    def wants(self):
        return [key for key in self.takes if key in self.required]


def arrays():
    """Returns NumPy, and the function that converts its arrays for user code: to tensors if torch is installed."""
    try:
        import numpy
    except ImportError:
        raise Unusable("columns need NumPy or torch, and %s has neither: install one, or set reward.python to another interpreter" % sys.executable)
    try:
        import torch
    except ImportError:
        return numpy, lambda array: array
    return numpy, torch.from_numpy


class PostProcessing(Callee):
    """A function that processes the scores of a batch, and the arguments that it takes."""

    def __init__(self, name, function, config):
        parameters = list(inspect.signature(function).parameters.values())
        super().__init__(name, function, "post_processing", parameters)
        self.config = config
        lacking = [key for key in self.required if key not in PROCESSES]
        if lacking:
            text = "%s%s requires %s, which is not passed to it: available are %s"
            raise Unusable(text % (name, inspect.signature(function), ", ".join(lacking), ", ".join(PROCESSES)))
        self.takes = [key for key in PROCESSES if key in self.names or self.takes_any]

    def columns(self):
        return self.takes

    def wants(self):
        return [key for key in self.takes if key in self.required]


def post_processing(path, name, config):
    """Loads a file and returns its function of this name."""
    arrays()
    [(name, function)] = find(load(path), [name], path)
    return PostProcessing(name, function, AlgorithmSettings.of(config))


def process(callee, arguments, payload):
    """Calls a function that processes scores. Returns the scores, and 1 for each response that is kept; an empty result if it returned None."""
    numpy, tensor = arrays()
    lengths = numpy.array(arguments.pop("lengths"), dtype=numpy.int64)
    there = numpy.arange(lengths.max(initial=0)) < lengths[:, None]
    scores = numpy.frombuffer(payload, "<f4", len(lengths)).astype("float32")
    mask = numpy.zeros(there.shape, dtype="float32")
    mask[there] = numpy.frombuffer(payload, "<f4", int(lengths.sum()), 4 * len(lengths))
    extras = {
        key: tensor(numpy.array([numpy.nan if value is None else value for value in values], dtype="float32"))
        for key, values in arguments.pop("extras").items()
    }
    given = dict(
        arguments,
        scores=tensor(scores.copy()),
        response_mask=tensor(mask),
        index=numpy.array(arguments["index"], dtype=object),
        lengths=tensor(lengths),
        extras=extras,
        config=callee.config,
    )
    result = callee(**{key: given[key] for key in callee.takes})
    if result is None:
        return {}
    keep = None
    if isinstance(result, Mapping):
        unknown = [str(key) for key in result if key not in ("scores", "keep")]
        if unknown or not result:
            raise Unusable('%s returned a dict with %s: allowed are "scores" and "keep"' % (callee.name, ", ".join(unknown) or "no keys"))
        keep, result = result.get("keep"), result.get("scores", scores)
    of_all = numpy.ones(len(scores), dtype="float32")
    return {}, [
        ragged(numpy, callee.name, what, column, of_all > 0) for what, column in (("scores", result), ("keep", of_all if keep is None else keep))
    ]


def estimator(path, name, config):
    """Loads a file and returns the estimator that it registers, or defines as a function, under this name."""
    arrays()
    return Estimator(name, named_function(path, name, "ADV_ESTIMATOR_REGISTRY"), AlgorithmSettings.of(config))


def named_function(path, name, registry):
    """Loads a file and returns the function that it adds to a registry of verl, or defines, under this name."""
    module = load(path)
    known = registered(registry)
    function = known.get(name) or getattr(module, name, None)
    if function is None:
        own = [key for key, value in known.items() if not value.__module__.startswith("verl.")]
        raise Missing(name, own or functions_of(module))
    if not callable(function) or inspect.isclass(function):
        raise Unusable("%s is not a function but %s" % (name, shown(function)))
    return function


def estimate(callee, arguments, payload):
    """Calls an estimator. Returns its result, ragged like the columns that it got."""
    numpy, tensor = arrays()
    lengths = numpy.array(arguments["lengths"], dtype=numpy.int64)
    there = numpy.arange(lengths.max(initial=0)) < lengths[:, None]
    given = dict(callee.settings, config=callee.config, index=numpy.array(arguments["index"], dtype=object))
    start = 0
    for name, per_token in arguments["columns"]:
        count = int(lengths.sum()) if per_token else len(lengths)
        column = numpy.frombuffer(payload, "<f4", count, start).astype("float32")
        start += 4 * count
        if per_token:
            padded = numpy.zeros(there.shape, dtype="float32")
            padded[there] = column
            column = padded
        given[name] = tensor(column)
    result = callee(**{key: given.get(key) for key in [*callee.takes, *callee.settings] if key in given or key in callee.required})
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Unusable("%s returned %s: return (advantages, returns), two columns of shape %s" % (callee.name, shown(result), list(there.shape)))
    named = zip(("advantages", "returns"), result)
    return {}, [ragged(numpy, callee.name, what, column, there) for what, column in named]


def ragged(numpy, name, what, column, there):
    """Returns a column of the function's result, without its padding."""
    if hasattr(column, "detach"):
        column = column.detach().cpu().float().numpy()
    try:
        array = None if column is None else numpy.asarray(column, dtype="<f4")
    except (TypeError, ValueError):
        array = None
    if array is None:
        raise Unusable("%s returned %s as %s: return numbers of shape %s" % (name, shown(column), what, list(there.shape)))
    if array.shape != there.shape:
        tokens = " of at most %d tokens" % there.shape[1] if there.ndim == 2 else ""
        text = "%s returned %s of shape %s: there are %d responses%s, so it must be %s"
        raise Unusable(text % (name, what, list(array.shape), len(there), tokens, list(there.shape)))
    return memoryview(numpy.ascontiguousarray(array[there])).cast("B")


CALLS["estimator"] = estimate
CALLS["post_processing"] = process
