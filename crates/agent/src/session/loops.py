# The names that files with agent loops import from verl. A loop's requests to the model and the tokenizer go to the trainer as
# the reply to the pending request; the next request brings the result.

import contextlib

# verl's own loops, which a file may register again: the trainer implements them.
BUILT_IN_LOOPS = ("single_turn_agent", "tool_agent")


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

    # In verl up to 0.6, generate returned the list of ids.
    def __iter__(self):
        return iter(self.token_ids)

    def __len__(self):
        return len(self.token_ids)


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

    def as_dict(self):
        return self.model_dump()


@contextlib.contextmanager
def simple_timer(name, timing_raw):
    """verl's `simple_timer`."""
    begun = time.monotonic()
    yield
    timing_raw[name] = timing_raw.get(name, 0) + time.monotonic() - begun


class FunctionCall(Model):
    """verl's `FunctionCall`: a call in the model's own text."""

    FIELDS = {"arguments": [one_of(str)], "name": [one_of(str)], "tool_call_id": [one_of(str, NOTHING), lambda: None]}


class ToolParser:
    """verl's `ToolParser`. The trainer parses the calls, except for parsers that a file registers."""

    _registry = {}
    stop_token_ids = ()  # the trainer already ends turns at the format's stop tokens

    def __init__(self, tokenizer, name=None):
        self.tokenizer, self.name = tokenizer, name

    @classmethod
    def get_tool_parser(cls, name, tokenizer):
        return cls._registry[name](tokenizer) if name in cls._registry else ToolParser(tokenizer, name)

    @classmethod
    def register(cls, name):
        def decorator(subclass):
            cls._registry[name] = subclass
            return subclass

        return decorator

    async def extract_tool_calls(self, responses_ids, tools=None):
        tools = [tool.model_dump() if hasattr(tool, "model_dump") else tool for tool in tools or ()]
        asked = {"op": "calls", "ids": ids_of(responses_ids), "tools": note(tools), "format": self.name}
        answer = ask_trainer({"tokenize": asked})
        return answer["content"], [FunctionCall(name=one["name"], arguments=one["arguments"], tool_call_id=one["id"]) for one in answer["calls"]]


class Merged:
    """verl's `MergeResult`: tokens after an append."""

    def __init__(self, token_ids, appended, removed, kind):
        self.token_ids, self.appended_token_count, self.kind = token_ids, appended, kind
        self.inserted_token_ids, self.removed_prefix_token_count = [], removed


def ids_of(ids):
    """Returns token ids as a list of integers."""
    return [int(opened(one)) for one in opened(ids)]


class AgentLoopBase:
    """verl's `AgentLoopBase` as of 0.9, compatible with loops written for versions since 0.5."""

    _class_initialized = False

    def __init__(self, trainer_config, server_manager, tokenizer, processor=None, dataset_cls=None, data_config=None, **kwargs):
        import asyncio

        self.config = getattr(trainer_config, "config", trainer_config)
        self.rollout_config = getattr(getattr(self.config, "actor_rollout_ref", None), "rollout", Section())
        self.server_manager, self.tokenizer, self.processor = server_manager, tokenizer, processor
        data = data_config or kwargs.get("dataset_config") or Section()
        self.data_config = getattr(data, "config", data)
        self.apply_chat_template_kwargs = self.data_config.get("apply_chat_template_kwargs") or {}
        self.mm_processor_kwargs, self.dataset_cls = {}, dataset_cls
        self.loop = asyncio.get_event_loop()
        # In verl up to 0.6, the first instance of a class prepares it.
        self.init_class(config=self.config, tokenizer=tokenizer, **({"processor": processor} if takes(self.init_class, "processor") else {}))

    @classmethod
    def init_class(cls, config, tokenizer, **kwargs):
        pass

    def _assert_mm_supported(self, has_multi_modal):
        if has_multi_modal:
            raise ValueError("only text can be in a conversation")

    def _get_mm_processor_kwargs(self, audio_data=None):
        return {}

    @staticmethod
    def build_sglang_video_payload(videos, mm_inputs):
        return None

    async def process_vision_info(self, messages):
        return {}

    async def process_multi_modal_info(self, messages):
        return {}

    def _cap_text_prompt_length(self, prompt_ids):
        return prompt_ids[-self.rollout_config.prompt_length :]

    async def apply_chat_template(self, messages, tools=None, images=None, videos=None, remove_system_prompt=False, **_):
        if remove_system_prompt:
            raise ValueError("remove_system_prompt: append messages by ct_merge_context_msg, which keeps sampled tokens unchanged")
        self._assert_mm_supported(bool(images or videos))
        variables = dict(self.apply_chat_template_kwargs)
        return self.tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=True, **variables)

    async def ct_build_initial_tokens(self, messages, tools=None, images=None, videos=None, audios=None, **_):
        self._assert_mm_supported(bool(audios))
        return self._cap_text_prompt_length(await self.apply_chat_template(messages, tools=tools, images=images, videos=videos))

    async def ct_merge_context_msg(self, previous_messages, updated_messages, runtime_token_ids, response_mask, response_logprobs=None, tools=None):
        if updated_messages[: len(previous_messages)] != previous_messages:
            raise ValueError("the messages so far have changed: messages can only be appended")
        new = note(updated_messages[len(previous_messages) :])
        asked = {"op": "append", "history": note(previous_messages), "new": new, "ids": ids_of(runtime_token_ids), "tools": note(tools)}
        answer = ask_trainer({"tokenize": dict(asked, variables=note(self.apply_chat_template_kwargs))})
        removed, added = answer["removed"], answer["added"]
        merged = Merged(runtime_token_ids[: len(runtime_token_ids) - removed] + added, len(added), removed, "context")
        aligned = [None if one is None else one[: len(one) - removed] + [zero] * len(added) for one, zero in ((response_mask, 0), (response_logprobs, 0.0))]
        return (merged, *aligned)

    async def ct_merge_assistant_token(self, runtime_token_ids, assistant_token_ids, response_mask, response_logprobs=None, assistant_logprobs=None):
        merged = Merged(list(runtime_token_ids) + list(assistant_token_ids), len(assistant_token_ids), 0, "assistant")
        log_probs = None if response_logprobs is None else list(response_logprobs) + list(assistant_logprobs or ())
        return merged, list(response_mask) + [1] * len(assistant_token_ids), log_probs

    async def run(self, sampling_params, **kwargs):
        raise NotImplementedError("%s has no run" % type(self).__name__)
