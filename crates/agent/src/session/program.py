# A function of the user's file that leads a conversation itself: it asks the trainer's server for the turns of the model, as it would ask OpenAI's.


class Program:
    """The function, and the names of the arguments that it takes."""

    OFFERED = ("row", "base_url", "api_key", "model")

    def __init__(self, file, path, name):
        # The agents SDK of OpenAI would send what it traces to OpenAI.
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
                raise Unusable("%s of %s wants the argument %s: it may have %s" % (name, path, own.name, offered))

    def run(self, row, access):
        offered = dict(access, row=row)
        result = finished(self.function(**{name: offered[name] for name in self.arguments}))
        extra = {}
        if isinstance(result, dict):
            extra = {key: note(value) for key, value in result.items() if key != "reward"}
            result = result.get("reward")
        return {"reward": measure(result, "the reward that %s returned" % self.name), "extra": extra}


def take_access(base_url, api_key, model):
    """Tells clients of OpenAI's protocol whom to ask."""
    STATE.access = {"base_url": base_url, "api_key": api_key, "model": model}
    os.environ.update(OPENAI_BASE_URL=base_url, OPENAI_API_BASE=base_url, OPENAI_API_KEY=api_key)
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1"]))
    return {}


def run_program(row, conversation):
    """Runs the program of a conversation to its end. Its name is among the arguments because the random seed is made of them."""
    return HOST.program.run(row, STATE.access)
