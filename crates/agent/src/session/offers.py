# The objects that the user's files offer: loaded once, in the process from which all conversations are forked.

import inspect


class Environment:
    """TRL's environment: its factory, and the schemas of its tools."""

    def __init__(self, factory, name):
        if not callable(factory):
            raise Unusable("%s is not an environment: it is %s" % (name, shown(factory)))
        # Only the methods are inspected, so a class need not be instantiated.
        made = factory if inspect.isclass(factory) else type(factory())
        if not inspect.isfunction(getattr(made, "reset", None)):
            raise Unusable("the environment %s has no method reset" % made.__name__)
        self.factory, self.name = factory, made.__name__
        self.methods = methods_of(made)
        self.schemas = [get_json_schema(getattr(made, method)) for method in self.methods]
        self.rewards = inspect.isfunction(getattr(made, "get_reward", None))


class Offers:
    """Everything that conversations can use, and the process from which they are forked."""

    def __init__(self):
        self.tools, self.environments, self.methods, self.interactions, self.loops = {}, {}, set(), {}, {}
        self.agent = self.program = self.loop_config = None
        self.modules = {}

    def file(self, path):
        """Returns the module of a file, which is loaded once."""
        if path not in self.modules:
            self.modules[path] = load(path)
        return self.modules[path]

    def add(self, made):
        if made.name in self.tools:
            raise Unusable("two tools have the name %s" % made.name)
        self.tools[made.name] = made

    def load(self, setup):
        sys.path.extend(setup["folders"])
        for path in setup["files"]:
            self.file(path)
        for entry in setup["verl_tools"]:
            self.add(verl_tool(entry))
        if setup["function_tools"]:
            self.load_function_tools(setup["function_tools"])
        for entry in setup["functions"]:
            module = self.file(entry["path"])
            names = entry["names"] or [
                name for name, value in vars(module).items()
                if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
            ]
            for name in names:
                function = attribute(module, name, entry["path"])
                schema = get_json_schema(function)
                self.add(PlainFunction(schema["function"]["name"], function, schema))
        for entry in setup["environments"]:
            if entry["name"] in self.environments:
                raise Unusable("two environments have the name %s" % entry["name"])
            factory = attribute(self.file(entry["path"]), entry["class"], entry["path"])
            self.environments[entry["name"]] = Environment(factory, entry["class"])
            self.methods.update(self.environments[entry["name"]].methods)
        for entry in setup["interactions"]:
            self.load_interaction(entry)
        if setup["agent"]:
            self.agent = agent_class(self.file(setup["agent"]), setup["agent"])
        if setup["program"]:
            self.program = Program(self.file, **setup["program"])
        self.loop_config = Section.of(setup["loop_config"] or {})
        for entry in setup["loops"]:
            # In verl, too, the name is one of the arguments.
            kwargs = {key: Section.of(value) for key, value in entry.items() if key != "_target_"}
            made = loop_class(entry)
            self.loops[entry["name"]] = made, made.loaded(**kwargs) if made is VerifiersLoop else kwargs
        if setup["loops"]:
            for name, made in AGENT_LOOPS.items():
                if name not in BUILT_IN_LOOPS:
                    self.loops.setdefault(name, (made, {"name": name}))

    def load_function_tools(self, path):
        module = self.file(path)
        from verl.tools.function_tool import FUNCTION_TOOL_REGISTRY

        if not FUNCTION_TOOL_REGISTRY:
            own = [name for name, value in vars(module).items() if inspect.isfunction(value)]
            text = "%s has no function with the decorator @function_tool; it has %s"
            raise Unusable(text % (path, ", ".join(own) or "no functions"))
        for made in FUNCTION_TOOL_REGISTRY.values():
            self.add(VerlFunction(made, schema_for_prompts(made.tool_schema)))

    def load_interaction(self, entry):
        kind = dotted(entry["class_name"], "interaction")
        # verl's rule for a missing name.
        simple = entry["class_name"].rpartition(".")[2]
        simple = simple[: -len("Interaction")] if simple.endswith("Interaction") else simple
        name = entry.get("name") or simple.lower()
        if name in self.interactions:
            raise Unusable("two interactions have the name %s" % name)
        self.interactions[name] = kind(dict(entry.get("config") or {}, name=name))

    def greeting(self):
        environments = [
            {"name": name, "class": one.name, "schemas": one.schemas, "rewards": one.rewards}
            for name, one in self.environments.items()
        ]
        return {
            "tools": [{"name": one.name, "schema": one.schema, "rewards": one.rewards} for one in self.tools.values()],
            "environments": environments,
            "interactions": list(self.interactions),
            "agent": self.agent is not None,
            "loops": [{"name": name, "scores": bool(getattr(made, "scores", False))} for name, (made, _) in self.loops.items()],
            "program": self.program is not None,
        }


def attribute(module, name, path):
    if not callable(getattr(module, name, None)):
        there = [own for own, value in vars(module).items() if callable(value) and getattr(value, "__module__", "") == module.__name__]
        raise Unusable("%s has no %s; it has %s" % (path, name, ", ".join(there) or "nothing that can be called"))
    return getattr(module, name)


def dotted(name, what):
    """Returns the object with a dotted name, from a module that can be imported from the current folder or PYTHONPATH."""
    module, _, own = name.rpartition(".")
    if not module:
        raise Unusable("the class of the %s %s needs the name of its module: module.%s" % (what, name, name))
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return attribute(importlib.import_module(module), own, module)


def verl_tool(entry):
    """Creates a tool from an entry of verl's tool configuration."""
    config = dict(entry.get("config") or {})
    if config.get("type", "native") != "native":
        raise Unusable("the tool %s is of type %s: only native tools are supported" % (entry["class_name"], config["type"]))
    from verl.tools.schemas import OpenAIFunctionToolSchema as Schema

    schema = None if entry.get("tool_schema") is None else Schema.model_validate(entry["tool_schema"])
    made = dotted(entry["class_name"], "tool")(config=config, tool_schema=schema)
    schema = made.get_openai_tool_schema()
    if schema is None:
        raise Unusable("the tool %s has no schema: add tool_schema" % entry["class_name"])
    return VerlTool(made, schema_for_prompts(schema))


def agent_class(module, path):
    """Returns the factory of agent instances in an OpenRLHF file."""
    executor = getattr(module, "AgentExecutor", None)
    if executor is not None:
        base = sys.modules["openrlhf.utils.agent"].MultiTurnAgentExecutor
        if not issubclass(executor, base) or executor.execute is not base.execute:
            raise Unusable("AgentExecutor in %s overrides execute: only MultiTurnAgentExecutor's is supported" % path)
        return executor().agent_instance_cls
    return attribute(module, "AgentInstance", path)
