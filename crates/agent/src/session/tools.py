# Tools: verl's classes and functions, TRL's functions, and the methods of TRL's environments. Each call of a turn can fail
# separately.
#
# Functions and methods in TRL's style run one after another, as in TRL, because an environment's methods share an object. verl's
# functions run in threads, and asynchronous ones in one event loop, all concurrently.


class AgentData:
    """The view of the conversation that verl's tools get; tools own `extra_fields`, which persists."""

    def __init__(self, request_id):
        self.request_id = request_id
        self.messages, self.prompt_ids, self.response_ids, self.response_mask, self.response_logprobs = [], [], [], [], []
        self.tools_kwargs, self.metrics, self.extra_fields, self.mm_processor_kwargs = {}, {}, {}, {}
        self.image_data = self.video_data = self.audio_data = None
        self.tool_rewards, self.turn_scores, self.tool_calls = [], [], []
        self.user_turns = self.assistant_turns = 0


def triple(result, name, function):
    """Returns the response, reward and metrics of a verl tool's result in any of its forms; a function's reward is never `None`."""
    if isinstance(result, tuple):
        if not 1 <= len(result) <= 3:
            raise TypeError("%s returned %d values: return (response,), (response, reward), or (response, reward, metrics)" % (name, len(result)))
        response, reward, metrics = (result + (None, None))[:3]
    else:
        response, reward, metrics = result, None, None
    if hasattr(response, "model_dump") and hasattr(response, "text"):
        if getattr(response, "image", None) or getattr(response, "video", None):
            raise Unusable("%s returned an image: only text is supported" % name)
        response = response.text or ""
    elif isinstance(response, dict):
        response = json.dumps(response, ensure_ascii=False)
    elif not isinstance(response, str):
        if not function:
            raise Unusable("execute of %s returned %s: return (ToolResponse(text=…), reward, metrics)" % (name, shown(result)))
        response = str(response)
    if reward is None:
        reward = 0.0 if function else None
    else:
        reward = wire(float(reward.item() if hasattr(reward, "item") else reward))
    return {"text": response, "reward": reward, "metrics": note(dict(metrics or {}))}


def takes(function, name):
    """Returns true if the function can be called with this keyword."""
    parameters = inspect.signature(function).parameters.values()
    return any(one.kind == one.VAR_KEYWORD or one.name == name and one.kind in KEYWORDS for one in parameters)


KEYWORDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class VerlTool:
    """A tool class of verl: created, executed and released around every call, as in verl's agent loop since 0.7."""

    is_async = rewards = True

    def __init__(self, tool, schema):
        self.tool, self.name, self.schema = tool, tool.name, schema

    async def call(self, arguments):
        kwargs = STATE.data.tools_kwargs.get(self.name) or {}
        create = kwargs.get("create_kwargs") or {}
        # Tools written for the first versions take them as separate arguments.
        create = {"create_kwargs": create} if takes(self.tool.create, "create_kwargs") else create
        execute = {"agent_data": STATE.data} if takes(self.tool.execute, "agent_data") else kwargs.get("execute_kwargs") or {}
        created = await awaited(self.tool.create(**create))
        instance = created[0] if isinstance(created, tuple) else created
        try:
            return triple(await awaited(self.tool.execute(instance, arguments, **execute)), self.name, False)
        finally:
            if instance:
                await awaited(self.tool.release(instance))


class VerlFunction:
    """A function tool of verl."""

    rewards = True

    def __init__(self, tool, schema):
        self.tool, self.function, self.name, self.schema, self.is_async = tool, tool.fn, tool.name, schema, tool.is_async
        self.in_thread = not tool.is_async

    def call(self, arguments):
        result = self.function(**arguments)
        return self.waited(result) if self.is_async else triple(result, self.name, True)

    async def waited(self, result):
        return triple(await result, self.name, True)


class PlainFunction:
    """A function, or a method of an environment, in TRL's style."""

    in_thread = rewards = False

    def __init__(self, name, function, schema):
        self.function, self.name, self.schema = function, name, schema
        self.is_async = inspect.iscoroutinefunction(function)

    def call(self, arguments):
        result = self.function(**arguments)
        return self.waited(result) if self.is_async else self.answer(result)

    async def waited(self, result):
        return self.answer(await result)

    def answer(self, result):
        return {"text": text_of(result, self.name), "reward": None, "metrics": {}}


class Failed(PlainFunction):
    """A tool that cannot be called."""

    def __init__(self, name, error):
        self.name, self.error, self.is_async = name, error, False

    def call(self, arguments):
        raise self.error


def tool(name):
    """Returns the tool with this name: of the conversation's environment, or of all tools."""
    if name in HOST.methods:
        try:
            environment = current_environment()
            if name in methods_of(type(environment)):
                return PlainFunction(name, getattr(environment, name), None)
        except Unusable as error:
            if name not in HOST.tools:
                return Failed(name, error)
    return HOST.tools.get(name) or Failed(name, Unusable("there is no such tool"))


def told(one, error):
    """Returns the result of a call that raised an error, in the words of the tool's framework."""
    try:
        text = str(error)
    except BaseException:
        text = type(error).__name__
    if len(text) > LONGEST_ERROR:
        text = text[:LONGEST_ERROR] + "… (%d characters)" % len(text)
    text = "Error executing tool '%s': %s" % (one.name, text) if one.rewards else str({"error": text})
    sys.stderr.write(trace(error) + "\n")
    return {"text": text, "reward": 0.0 if one.rewards else None, "metrics": {}, "raised": type(error).__name__}


def call_tools(calls, seen, tools_kwargs, request_id):
    """Runs the calls of one turn. Sends the start and the result of each call at once: each call has a time limit, and the trainer kills the
    process if one exceeds it."""
    data = STATE.data = STATE.data or AgentData(request_id)
    data.__dict__.update(seen, tools_kwargs=tools_kwargs or {})
    tools = [tool(call["name"]) for call in calls]
    arguments = [json.loads(call["arguments"]) for call in calls]
    answers = [None] * len(calls)

    def begin(index):
        if len(calls) > 1:
            send_part({"index": index})
        return time.monotonic()

    def done(index, answer, begun):
        answers[index] = dict(answer, seconds=time.monotonic() - begun)
        if len(calls) > 1:
            send_part({"index": index, "answer": answers[index]})

    together = []
    for index, one in enumerate(tools):
        if one.is_async or len(calls) > 1 and one.in_thread:
            together.append(index)
            continue
        begun = begin(index)
        try:
            answer = one.call(arguments[index])
        except BaseException as error:
            answer = told(one, error)
        done(index, answer, begun)

    async def finish(index):
        one, begun = tools[index], begin(index)
        try:
            answer = await (one.call(arguments[index]) if one.is_async else in_thread(one.call, arguments[index]))
        except BaseException as error:
            answer = told(one, error)
        done(index, answer, begun)

    async def all_of_them():
        import asyncio

        await asyncio.gather(*map(finish, together))

    if together:
        run_async(all_of_them())
    extra = data.extra_fields
    return {"answers": answers, "extra": note(extra) if isinstance(extra, dict) else {}}
