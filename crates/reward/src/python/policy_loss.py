# A policy loss with verl's signature. It gets the columns of one micro-batch, [B, T], padded with zeros: torch tensors if torch is
# installed, which then computes the gradient of the result, and otherwise NumPy arrays.

# Arguments that verl passes, and those that are passed if the function names them.
LOSS_PASSES = ("old_log_prob", "log_prob", "advantages", "response_mask", "loss_agg_mode", "config", "rollout_is_weights")
LOSS_COLUMNS = ("entropy", "ref_log_prob")
# Inputs with a gradient.
DIFFERENTIATED = ("log_prob", "entropy")


class PolicyLoss(Callee):
    """A policy loss, and the arguments that it takes."""

    def __init__(self, name, function, config):
        parameters = list(inspect.signature(function).parameters.values())
        super().__init__(name, function, "policy_loss", parameters)
        self.config = config
        known = LOSS_PASSES + LOSS_COLUMNS
        lacking = [key for key in self.required if key not in known]
        lacking += [p.name for p in parameters if p.kind == p.POSITIONAL_ONLY and p.default is p.empty]
        if lacking:
            text = "%s%s requires %s, which is not passed to it: available are %s"
            raise Unusable(text % (name, inspect.signature(function), ", ".join(lacking), ", ".join(known)))
        self.takes = [key for key in known if key in self.names or self.takes_any and key in LOSS_PASSES]

    def columns(self):
        return self.takes

    def wants(self):
        return [key for key in self.takes if key in self.required]


def policy_loss(path, name, config):
    """Loads a file and returns the policy loss that it registers, or defines as a function, under this name."""
    arrays()
    return PolicyLoss(name, named_function(path, name, "POLICY_LOSS_REGISTRY"), ActorSettings.of(config))


def evaluate_loss(callee, arguments, payload):
    """Calls a policy loss. Returns its value, its metrics, and its gradient with respect to log-probabilities and entropies, ragged like
    the columns that it got."""
    numpy, tensor = arrays()
    lengths = numpy.array(arguments["lengths"], dtype=numpy.int64)
    there = numpy.arange(lengths.max()) < lengths[:, None]
    given = dict(loss_agg_mode=arguments["loss_agg_mode"], config=ActorSettings(callee.config), rollout_is_weights=None, ref_log_prob=None)
    given["config"]["global_batch_info"] = arguments["global_batch_info"]
    count = int(lengths.sum())
    for at, name in enumerate(arguments["columns"]):
        padded = numpy.zeros(there.shape, dtype="float32")
        padded[there] = numpy.frombuffer(payload, "<f4", count, 4 * at * count)
        given[name] = tensor(padded)
    torch = sys.modules.get("torch")
    if torch:
        for name in DIFFERENTIATED:
            given[name].requires_grad_()
    result = callee(**{key: given[key] for key in callee.takes if given[key] is not None or key in callee.required})
    parts = list(result) if isinstance(result, (tuple, list)) else [result]
    loss, metrics, own = (parts + [{}, None][len(parts) - 1:])[:3] if 1 <= len(parts) <= 3 else (None, {}, None)
    value = number(loss.detach() if hasattr(loss, "detach") else loss)
    if value is None or not isinstance(metrics, Mapping):
        raise Unusable("%s returned %s: return the loss as one number, or (loss, metrics)" % (callee.name, shown(result)))
    values = {str(key): number(metric.detach() if hasattr(metric, "detach") else metric) for key, metric in metrics.items()}
    for key, metric in metrics.items():
        if values[str(key)] is None:
            raise Unusable("%s returned %s for the metric %s: return a number" % (callee.name, shown(metric), key))
    gradients = own_gradients(callee, own) if own is not None else slopes(callee, torch, loss, given)
    zeros = numpy.zeros(there.shape, dtype="float32")
    columns = [
        ragged(numpy, callee.name, "the gradient by " + name, zeros if column is None else column, there)
        for name, column in zip(DIFFERENTIATED, gradients)
    ]
    return {"loss": wire(value), "metrics": {key: wire(metric) for key, metric in values.items()}}, columns


def own_gradients(callee, own):
    """Returns the gradients that a function computed itself: an array by log_prob, or arrays by the names of inputs."""
    own = own if isinstance(own, Mapping) else {"log_prob": own}
    unknown = [str(key) for key in own if key not in DIFFERENTIATED]
    if unknown:
        raise Unusable("%s returned a gradient by %s: allowed are %s" % (callee.name, ", ".join(unknown), ", ".join(DIFFERENTIATED)))
    return [own.get(name) for name in DIFFERENTIATED]


def slopes(callee, torch, loss, given):
    """Returns the gradients that torch computes."""
    if torch is None:
        text = "%s returned no gradient, and %s has no torch to compute it: return (loss, metrics, gradient by log_prob), install torch, or set reward.python to another interpreter"
        raise Unusable(text % (callee.name, sys.executable))
    if getattr(loss, "requires_grad", False):
        return torch.autograd.grad(loss.sum(), [given[name] for name in DIFFERENTIATED], allow_unused=True)
    if given["response_mask"].any():
        raise Unusable("%s returned a loss without a gradient: compute it from log_prob, without detach() or no_grad()" % callee.name)
    return [None, None]


CALLS["policy_loss"] = evaluate_loss
