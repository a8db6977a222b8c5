# A function of the user's file that leads a conversation itself: it requests turns of the model from the trainer's server, by
# OpenAI's protocol.


class Program:
    """The function, and the names of its arguments."""

    OFFERED = ("row", "base_url", "api_key", "model")

    def __init__(self, file, path, name):
        # OpenAI's agents SDK would send its traces to OpenAI.
        os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
        self.function, self.name = attribute(file(path), name, path), name
        self.arguments = []
        for own in inspect.signature(self.function).parameters.values():
            if own.kind is own.VAR_KEYWORD:
                self.arguments = list(self.OFFERED)
            elif own.name in self.OFFERED and own.kind is not own.POSITIONAL_ONLY:
                self.arguments.append(own.name)
            elif own.default is own.empty and own.kind is not own.VAR_POSITIONAL:
                offered = ", ".join(self.OFFERED)
                raise Unusable("%s of %s has the argument %s: the arguments are %s" % (name, path, own.name, offered))

    def run(self, row, access):
        offered = dict(access, row=row)
        result = finished(self.function(**{name: offered[name] for name in self.arguments}))
        extra = {}
        if isinstance(result, dict):
            extra = {key: note(value) for key, value in result.items() if key != "reward"}
            result = result.get("reward")
        return {"reward": measure(result, "the reward that %s returned" % self.name), "extra": extra}


def take_access(base_url, api_key, model):
    """Sets the server address and key for clients of OpenAI's protocol."""
    STATE.access = {"base_url": base_url, "api_key": api_key, "model": model}
    os.environ.update(OPENAI_BASE_URL=base_url, OPENAI_API_BASE=base_url, OPENAI_API_KEY=api_key)
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1"]))
    return {}


def run_program(row, conversation):
    """Runs the program of a conversation to its end. `conversation` is an argument only because the random seed depends on the arguments."""
    return HOST.program.run(row, STATE.access)
