# Substitutes for the names that files written for verl's, OpenRLHF's and TRL's agents import. An installed package is preferred;
# a module that is missing, or whose import fails, is substituted.

import functools
import importlib.abc
import importlib.machinery
import types
from uuid import uuid4

FUNCTION_TOOLS = {}
AGENT_LOOPS = {}


class BaseTool:
    """verl's `BaseTool`."""

    def __init__(self, config, tool_schema):
        self.config = config
        self.tool_schema = tool_schema or self.get_openai_tool_schema()
        assert self.tool_schema is not None, "Tool schema is not set!"
        self.name = self.tool_schema.function.name

    def get_openai_tool_schema(self):
        return getattr(self, "tool_schema", None)

    async def create(self, instance_id=None, **kwargs):
        return (str(uuid4()) if instance_id is None else instance_id), ToolResponse()

    async def execute(self, instance_id, parameters, **kwargs):
        return ToolResponse(text="Updated the tool state."), 0.0, {}

    async def calc_reward(self, instance_id, **kwargs):
        return 0.0

    async def release(self, instance_id, **kwargs):
        pass


class FunctionTool:
    """A function that is registered as a tool."""

    def __init__(self, name, fn, tool_schema, is_async):
        self.name, self.fn, self.tool_schema, self.is_async = name, fn, tool_schema, is_async

    async def call(self, parameters):
        return await self.fn(**parameters) if self.is_async else await in_thread(functools.partial(self.fn, **parameters))


def normalize_function_tool_return(returned):
    """verl's `normalize_function_tool_return`."""
    made = triple(returned, "the function", True)
    return ToolResponse(text=made["text"]), made["reward"], made["metrics"]


def function_tool(name=None, *, schema=None):
    """verl's decorator `function_tool`."""

    def decorator(function, own=None):
        tool = own or function.__name__
        if schema is None:
            kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            variadic = [key for key, one in inspect.signature(function).parameters.items() if one.kind in kinds]
            if variadic:
                text = "the function tool %s takes any number of arguments (%s): give each a name"
                raise ValueError(text % (tool, ", ".join(variadic)))
            written = get_json_schema(function)
            written["function"]["name"] = tool
        made = OpenAIFunctionToolSchema.model_validate(written if schema is None else schema)
        there = FUNCTION_TOOLS.get(tool)
        if there is not None and there.fn is not function:
            raise ValueError("the function tool %s is registered twice: %r and %r" % (tool, there.fn, function))
        FUNCTION_TOOLS[tool] = FunctionTool(tool, function, made, inspect.iscoroutinefunction(function))
        return function

    if callable(name) and schema is None:
        return decorator(name)
    return functools.partial(decorator, own=name)


class BaseInteraction:
    """verl's `BaseInteraction`."""

    def __init__(self, config):
        self.config = config
        self.name = config.get("name", "interaction_agent")

    async def start_interaction(self, instance_id=None, **kwargs):
        return str(uuid4()) if instance_id is None else instance_id

    async def generate_response(self, instance_id, messages, **kwargs):
        raise NotImplementedError("%s has no generate_response" % type(self).__name__)

    async def calculate_score(self, *args, **kwargs):
        return 0.0

    async def finalize_interaction(self, *args, **kwargs):
        pass


class Register:
    """verl's `register` of agent loops."""

    def __new__(cls, agent_name):
        def decorator(subclass):
            AGENT_LOOPS[agent_name] = subclass
            return subclass

        return decorator


class AgentInstanceBase:
    """OpenRLHF's `AgentInstanceBase`."""

    def __init__(self, *args, **kwargs):
        pass

    async def reset(self, states, **kwargs):
        return states

    async def step(self, state_dict, **kwargs):
        raise NotImplementedError("%s has no step" % type(self).__name__)


class AgentExecutorBase:
    """OpenRLHF's `AgentExecutorBase`."""

    async def execute(self, *args, **kwargs):
        raise NotImplementedError("%s has no execute" % type(self).__name__)


class MultiTurnAgentExecutor(AgentExecutorBase):
    """OpenRLHF's `MultiTurnAgentExecutor`; its loop runs in the trainer."""

    def __init__(self, agent_instance_cls):
        assert issubclass(agent_instance_cls, AgentInstanceBase), "AgentInstance must inherit from AgentInstanceBase"
        self.agent_instance_cls = agent_instance_cls


def gsm8k_answer(solution_str, method="strict"):
    """verl's `gsm8k.extract_solution`."""
    solution_str = solution_str[-300:]
    if method == "strict":
        found = re.findall("#### (\\-?[0-9\\.\\,]+)", solution_str)
        return found[-1].replace(",", "").replace("$", "") if found else None
    found = [text for text in re.findall("(\\-?[0-9\\.\\,]+)", solution_str) if text not in ("", ".")]
    return found[-1] if found else None


def gsm8k_score(solution_str, ground_truth, method="strict", format_score=0.0, score=1.0):
    """verl's `gsm8k.compute_score`."""
    answer = gsm8k_answer(solution_str, method)
    return 0 if answer is None else score if answer == ground_truth else format_score


def untraced(function):
    """verl's `rollout_trace_op`, without any recording."""
    return function


class Training:
    """A name that a TRL training script imports in addition to its tools and environments. The trainer replaces it."""

    def __init__(self, *_, **__):
        raise Unusable("the file creates a TRL trainer when it is loaded: move that under `if __name__ == \"__main__\":`")


TRAINING = """
    GRPOConfig GRPOTrainer RLOOConfig RLOOTrainer ModelConfig ScriptArguments TrlParser get_dataset get_kbit_device_map get_peft_config
    get_quantization_config
"""


MODELS = """
    OpenAIFunctionPropertySchema OpenAIFunctionParametersSchema OpenAIFunctionSchema OpenAIFunctionToolSchema OpenAIFunctionParsedSchema
    OpenAIFunctionCallSchema OpenAIFunctionToolCall ToolResponse
"""


# Modules that are always substituted, because they are the trainer's side of a loop.
OURS = ("verl.experimental.agent_loop", "verl.experimental.agent_loop.agent_loop")


def stood_in():
    """Returns the substituted modules, with their contents."""
    loops = dict(
        AgentLoopBase=AgentLoopBase, AgentLoopOutput=AgentLoopOutput, AgentLoopMetrics=AgentLoopMetrics, register=Register,
        AsyncLLMServerManager=ServerManager, LLMServerClient=ServerManager, DictConfigWrap=Wrapped, ToolListWrap=Wrapped,
        simple_timer=simple_timer, rollout_trace_op=untraced, TokenOutput=TokenOutput,
    )
    gsm8k = dict(extract_solution=gsm8k_answer, compute_score=gsm8k_score)
    modules = {
        "verl.tools.base_tool": dict(
            BaseTool=BaseTool, ToolResponse=ToolResponse, OpenAIFunctionToolSchema=OpenAIFunctionToolSchema, rollout_trace_op=untraced
        ),
        "verl.tools.schemas": {name: globals()[name] for name in MODELS.split()},
        "verl.tools.function_tool": dict(
            function_tool=function_tool, FunctionTool=FunctionTool, FUNCTION_TOOL_REGISTRY=FUNCTION_TOOLS, get_function_tool=FUNCTION_TOOLS.get,
            normalize_function_tool_return=normalize_function_tool_return,
        ),
        "verl.utils.rollout_trace": dict(rollout_trace_op=untraced),
        "verl.utils.reward_score.gsm8k": gsm8k,
        "verl.interactions.base": dict(BaseInteraction=BaseInteraction),
        "verl.experimental.agent_loop.agent_loop": loops,
        "verl.experimental.agent_loop": loops,
        "verl.experimental.agent_loop.tool_parser": dict(ToolParser=ToolParser, FunctionCall=FunctionCall),
        "verl.tools.utils.tool_registry": dict(initialize_tools_from_config=tools_of_verl),
        "verl.tools.tool_registry": dict(load_all_tools=tools_of_verl),
        "verl.workers.rollout.llm_server": dict(LLMServerClient=ServerManager),
        "verl.utils.profiler": dict(simple_timer=simple_timer),
        "verl.workers.rollout.replica": dict(TokenOutput=TokenOutput),
        "openrlhf.utils.agent": dict(
            AgentInstanceBase=AgentInstanceBase, AgentExecutorBase=AgentExecutorBase, MultiTurnAgentExecutor=MultiTurnAgentExecutor
        ),
        "trl": {name: Training for name in TRAINING.split()},
        "transformers.utils.chat_template_utils": dict(get_json_schema=get_json_schema),
        "transformers.utils": dict(get_json_schema=get_json_schema),
    }
    for name in list(modules):
        while "." in name:
            name = name.rpartition(".")[0]
            modules.setdefault(name, {})
    return modules


class StandIns(importlib.abc.MetaPathFinder):
    """Finds substitutes for packages that are not installed, and watches the import of installed ones."""

    def __init__(self, modules):
        self.modules = modules

    def find_spec(self, name, path=None, target=None):
        if name not in self.modules:
            return None
        real = importlib.machinery.PathFinder.find_spec(name, path)
        # A mere folder with the package's name does not count.
        if real is not None and real.origin is not None and real.loader is not None:
            if name in OURS:
                empty = Empty(self.modules, list(real.submodule_search_locations or ()))
                return importlib.machinery.ModuleSpec(name, empty, is_package=True)
            real.loader = Watched(real.loader, self.modules)
            return real
        return importlib.machinery.ModuleSpec(name, Empty(self.modules), is_package=True)


class Empty(importlib.abc.Loader):
    """Loads a module with substitute contents; other modules below it are searched in these folders."""

    def __init__(self, modules, folders=()):
        self.modules, self.folders = modules, folders

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name, contents = module.__name__, self.modules[module.__name__]
        lacks = lacking(name, contents)

        def missing(wanted):
            if "%s.%s" % (name, wanted) in self.modules:
                raise AttributeError(wanted)  # then Python imports the submodule
            lacks(wanted)

        module.__path__ = list(self.folders)
        module.__dict__.update(contents, __getattr__=missing)


class Watched(importlib.abc.Loader):
    """Loads an installed module, or its substitute if that fails."""

    def __init__(self, loader, modules):
        self.loader, self.modules = loader, modules

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        try:
            self.loader.exec_module(module)
        except Exception as error:
            sys.stderr.write("cannot import %s, using a partial substitute: %s\n" % (module.__name__, error))
            Empty(self.modules).exec_module(module)
