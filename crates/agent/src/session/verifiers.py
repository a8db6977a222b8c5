# Environments of the package `verifiers` (0.1) as an agent loop: `_target_: burnish.Verifiers`, with the environment's name. The
# environment leads the conversation by messages, requests turns from a client with OpenAI's protocol, and scores the conversation
# by its rubric. The client here forwards requests to the trainer, and continues the tokens of a conversation if its earlier
# messages are unchanged.

import logging

VERIFIERS = "burnish.Verifiers"


class Turns:
    """A substitute for `AsyncOpenAI`: keeps the messages of the last request, and all tokens so far."""

    def __init__(self, loop, params, verifiers):
        self.chat = self.completions = self
        self.loop, self.params, self.verifiers = loop, params, verifiers
        self.messages, self.tools, self.ids, self.mask, self.begin, self.branches = [], [], [], [], 0, 0
        self.parser = ToolParser.get_tool_parser(loop.rollout_config.multi_turn.format, loop.tokenizer)

    async def create(self, messages, tools=None, model=None, extra_headers=None, max_completion_tokens=None, **params):
        room, tools = self.loop.rollout_config.response_length, note(tools or [])
        messages, count = note(list(messages)), len(self.messages)
        if count and tools == self.tools and list(map(said, messages[:count])) == list(map(said, self.messages)) and len(messages) > count:
            messages = self.messages + messages[count:]
            merged, mask, _ = await self.loop.ct_merge_context_msg(self.messages, messages, self.ids, self.mask, tools=tools)
            if len(mask) >= room:
                raise self.verifiers.OverlongPromptError("the response has reached its token limit")
            self.ids, self.mask = merged.token_ids, mask
        else:
            self.branches += count > 0
            self.ids, self.mask, self.tools = await self.loop.ct_build_initial_tokens(messages, tools=tools), [], tools
            self.begin = len(self.ids)
        if max_completion_tokens is not None:
            params["max_tokens"] = max_completion_tokens
        output = await self.loop.server_manager.generate(prompt_ids=self.ids, sampling_params=dict(self.params, **params))
        prompt, self.ids, self.mask = len(self.ids), self.ids + output.token_ids, self.mask + [1] * len(output.token_ids)
        content, calls = await self.parser.extract_tool_calls(output.token_ids, tools)
        # The environment rejects a response without any text, so an empty one keeps the text of the token that ended the turn.
        content = content.replace(self.loop.tokenizer.eos_token, "").strip() or (None if calls else content)
        message = {"role": "assistant", "content": content}
        if calls:
            functions = [{"name": call.name, "arguments": call.arguments} for call in calls]
            names = ["call_%d_%d" % (len(messages), at) for at in range(len(calls))]
            message["tool_calls"] = [{"id": name, "type": "function", "function": one} for name, one in zip(names, functions)]
        self.messages = messages + [message]
        return self.completion(message, "length" if len(self.mask) >= room else "tool_calls" if calls else "stop", prompt, len(output.token_ids))

    def completion(self, message, reason, prompt, length):
        from openai.types.chat import ChatCompletion

        usage = {"prompt_tokens": prompt, "completion_tokens": length, "total_tokens": prompt + length}
        choice = {"index": 0, "finish_reason": reason, "message": message}
        made = {"id": "1", "object": "chat.completion", "created": 0, "model": "policy", "choices": [choice], "usage": usage}
        return ChatCompletion.model_validate(made)


def said(message):
    """Returns the content of a message in a normalized form."""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    functions = [call.get("function") or call for call in message.get("tool_calls") or ()]
    return message.get("role"), content or "", [(function.get("name"), function.get("arguments")) for function in functions]


class Told(logging.Handler):
    """Collects errors that rubrics only log: a failed reward function, which they count as 0."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.failures = []

    def emit(self, record):
        if record.getMessage().startswith("Error calling"):
            self.failures.append(record.getMessage())


class VerifiersLoop(AgentLoopBase):
    """An environment of `verifiers` as an agent loop."""

    scores = True

    def __init__(self, *args, environment, verifiers, **kwargs):
        super().__init__(*args, **kwargs)
        self.environment, self.verifiers = environment, verifiers

    @classmethod
    def loaded(cls, name, environment=None, arguments=None, **others):
        """Returns the arguments of the constructor for an entry of the list of loops."""
        if others or not environment:
            raise Unusable("the loop %s: %s takes `environment` (a name) and optionally `arguments`; given: %s" % (name, VERIFIERS, ", ".join(others) or "nothing"))
        try:
            import verifiers
        except ImportError as error:
            raise Unusable('the loop %s: %s cannot be imported (%s): pip install "verifiers<0.2" for %s' % (name, "verifiers", error, sys.executable))
        if not hasattr(verifiers, "load_environment"):
            version = getattr(verifiers, "__version__", "of this version")
            raise Unusable('the loop %s: verifiers %s is not supported, only 0.1: pip install "verifiers<0.2"' % (name, version))
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
        made = verifiers.load_environment(environment, **dict(arguments or {}))
        for number, handler in handlers:
            signal.signal(number, handler)
        if made.requires_group_rollouts:
            raise Unusable("the loop %s: the rubric of %s scores groups of responses together, but conversations are scored one by one" % (name, environment))
        return {"name": name, "environment": made, "verifiers": verifiers}

    async def run(self, sampling_params, **row):
        from verifiers.clients import OpenAIChatCompletionsClient

        turns, told = Turns(self, sampling_params, self.verifiers), Told()
        given = {key: row[key] for key in ("answer", "info", "task") if row.get(key) is not None}
        given.update(prompt=row["raw_prompt"], example_id=row.get("example_id", row["index"]))
        state = await self.environment.rollout(given, OpenAIChatCompletionsClient(turns), "policy", {})
        if state.get("error") is not None:
            error = state["error"]
            raise RuntimeError("the environment ended with %s: %s" % (type(error).__name__, error.__cause__ or error))
        logging.getLogger("verifiers").addHandler(told)
        await self.environment.rubric.score_rollout(state)
        logging.getLogger("verifiers").removeHandler(told)
        if told.failures:
            raise RuntimeError(told.failures[0])
        if not turns.ids:
            raise RuntimeError("the environment requested no turn")
        room = self.rollout_config.response_length
        extra = {"metrics": note(state.get("metrics") or {}), "branches": turns.branches}
        return AgentLoopOutput(
            prompt_ids=turns.ids[: turns.begin], response_ids=turns.ids[turns.begin :][:room], response_mask=turns.mask[:room],
            reward_score=state["reward"], metrics={}, extra_fields=extra,
        )
