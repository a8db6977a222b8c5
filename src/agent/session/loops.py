# Agent loops of verl in users' files: their `run` is called here, and what it asks of the model and the tokenizer is asked of the trainer, by
# the reply to the request that is pending; the next request brings the answer.

import contextlib


class TokenOutput(Model):
    """verl's `TokenOutput`."""

    FIELDS = {
        "token_ids": [one_of(list)],
        "log_probs": [one_of(list, NOTHING), lambda: None],
        "routed_experts": [one_of(object), lambda: None],
        "stop_reason": [one_of(str, NOTHING), lambda: None],
        "num_preempted": [one_of(int, NOTHING), lambda: None],
        "extra_fields": [one_of(dict), dict],
    }


class AgentLoopMetrics(Model):
    """verl's `AgentLoopMetrics`."""

    FIELDS = {
        "generate_sequences": [one_of(float, int), lambda: 0.0],
        "tool_calls": [one_of(float, int), lambda: 0.0],
        "compute_score": [one_of(float, int), lambda: 0.0],
        "num_preempted": [one_of(int), lambda: -1],
    }


class AgentLoopOutput(Model):
    """verl's `AgentLoopOutput`."""

    FIELDS = {
        "prompt_ids": [one_of(list, tuple)],
        "response_ids": [one_of(list, tuple)],
        "response_mask": [one_of(list, tuple)],
        "response_logprobs": [one_of(list, NOTHING), lambda: None],
        "routed_experts": [one_of(object), lambda: None],
        "multi_modal_data": [one_of(object), lambda: None],
        "reward_score": [one_of(float, int, NOTHING), lambda: None],
        "num_turns": [one_of(int), lambda: 0],
        "metrics": [one_of(AgentLoopMetrics, dict), AgentLoopMetrics],
        "extra_fields": [one_of(dict), dict],
        "mm_processor_kwargs": [one_of(object), lambda: None],
        "mm_processor_output": [one_of(object), lambda: None],
    }


@contextlib.contextmanager
def simple_timer(name, timing_raw):
    """verl's `simple_timer`."""
    begun = time.monotonic()
    yield
    timing_raw[name] = timing_raw.get(name, 0) + time.monotonic() - begun


class Section(dict):
    """A section of settings, read by attribute, by item or by `get`."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError("these settings have no %s; they have %s" % (name, ", ".join(self)))

    @classmethod
    def of(cls, value):
        if isinstance(value, dict):
            return cls((key, cls.of(item)) for key, item in value.items())
        return [cls.of(item) for item in value] if isinstance(value, list) else value


class ServerManager:
    """verl's server manager: generates by asking the trainer."""

    async def generate(self, request_id=None, prompt_ids=None, sampling_params=None, **_):
        answer = ask_trainer({"generate": {"prompt_ids": list(prompt_ids), "sampling_params": note(sampling_params or {})}})
        return TokenOutput.model_validate(answer)


class LoopTokenizer:
    """The model's tokenizer, which lives in the trainer."""

    def __init__(self, about):
        self.__dict__.update(about or {})

    def apply_chat_template(self, messages, tools=None, add_generation_prompt=False, tokenize=True, return_dict=False, **variables):
        asked = {"messages": note(messages), "tools": note(tools), "add_generation_prompt": bool(add_generation_prompt)}
        for name in ("return_tensors", "padding", "truncation", "max_length"):
            variables.pop(name, None)
        answer = ask_trainer({"tokenize": dict(asked, op="render", tokenize=bool(tokenize), variables=note(variables))})
        return {"input_ids": answer} if tokenize and return_dict else answer

    def encode(self, text, add_special_tokens=True, **_):
        return ask_trainer({"tokenize": {"op": "encode", "text": text, "add_special_tokens": bool(add_special_tokens)}})

    def decode(self, token_ids, skip_special_tokens=False, **_):
        ids = opened(token_ids)
        ids = [ids] if isinstance(ids, int) else list(ids)
        return ask_trainer({"tokenize": {"op": "decode", "ids": ids, "skip_special_tokens": bool(skip_special_tokens)}})

    def batch_decode(self, sequences, **options):
        return [self.decode(ids, **options) for ids in sequences]

    def __call__(self, text, add_special_tokens=True, **_):
        return {"input_ids": self.encode(text, add_special_tokens=add_special_tokens)}


class AgentLoopBase:
    """verl's `AgentLoopBase`."""

    def __init__(self, trainer_config, server_manager, tokenizer, processor=None, *_, **kwargs):
        import asyncio

        self.config = getattr(trainer_config, "config", trainer_config)
        self.rollout_config = getattr(getattr(self.config, "actor_rollout_ref", None), "rollout", Section())
        self.server_manager, self.tokenizer, self.processor = server_manager, tokenizer, processor
        data = kwargs.get("data_config") or kwargs.get("dataset_config") or Section()
        self.data_config = getattr(data, "config", data)
        self.apply_chat_template_kwargs = self.data_config.get("apply_chat_template_kwargs") or {}
        self.dataset_cls = kwargs.get("dataset_cls")
        self.loop = asyncio.get_event_loop()

    async def process_vision_info(self, messages):
        return {}

    async def process_multi_modal_info(self, messages):
        return {}

    async def apply_chat_template(self, messages, tools=None, images=None, videos=None, remove_system_prompt=False):
        variables = dict(self.apply_chat_template_kwargs)
        return self.tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=True, **variables)

    async def ct_build_initial_tokens(self, messages, tools=None, **_):
        ids = await self.apply_chat_template(messages, tools=tools)
        length = self.rollout_config.get("prompt_length")
        return ids[-length:] if length and len(ids) > length else ids

    async def run(self, sampling_params, **kwargs):
        raise NotImplementedError("%s has no run" % type(self).__name__)


def loop_class(entry):
    """The class of an agent loop: by its dotted name, or registered under its name."""
    if entry.get("_target_"):
        return dotted(entry["_target_"], "agent loop")
    registered = sys.modules.get("verl.experimental.agent_loop.agent_loop")
    there = vars(registered).get("_agent_loop_registry", AGENT_LOOPS) if registered else AGENT_LOOPS
    if entry["name"] not in there:
        raise Unusable("no agent loop is registered as %s; there are %s" % (entry["name"], ", ".join(there) or "none"))
    found = there[entry["name"]]
    return dotted(found["_target_"], "agent loop") if isinstance(found, dict) else found  # verl itself registers names of classes


def run_loop(name, sampling_params, row, config, tokenizer):
    """Runs an agent loop to its end; what it asks meanwhile are replies before that."""
    made, kwargs = HOST.loops[name]
    config = Section.of(config)
    holder = SimpleNamespace(config=config)

    async def whole():
        data = SimpleNamespace(config=config.get("data", Section()))
        loop = made(
            trainer_config=holder, server_manager=ServerManager(), tokenizer=LoopTokenizer(tokenizer), processor=None,
            dataset_cls=None, data_config=data, dataset_config=data, **kwargs
        )
        return await loop.run(sampling_params, **row)

    outputs = run_async(whole())
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    if not outputs or not all(hasattr(output, "model_dump") for output in outputs):
        raise Unusable("run of the agent loop %s returned %s: return an AgentLoopOutput" % (name, shown(outputs)))
    return {"done": [loop_output(output) for output in outputs]}


def loop_output(output):
    """An output for the trainer."""
    metrics = output.metrics
    return {
        "prompt_ids": [int(number) for number in opened(output.prompt_ids)],
        "response_ids": [int(number) for number in opened(output.response_ids)],
        "response_mask": [int(number) for number in opened(output.response_mask)],
        "response_logprobs": None if output.response_logprobs is None else [float(number) for number in output.response_logprobs],
        "reward_score": wire(number(output.reward_score)) if output.reward_score is not None else None,
        "num_turns": output.num_turns,
        "metrics": note(metrics if isinstance(metrics, dict) else metrics.model_dump()),
        "extra_fields": note(output.extra_fields),
    }
