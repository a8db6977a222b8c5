# Runs agent loops of verl from users' files (loops.py): their arguments and outputs.


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
    """verl's server manager: requests turns from the trainer."""

    async def generate(self, request_id=None, prompt_ids=None, sampling_params=None, image_data=None, video_data=None, audio_data=None, **_):
        if image_data or video_data or audio_data:
            raise ValueError("only text can be in a conversation")
        answer = ask_trainer({"generate": {"prompt_ids": ids_of(prompt_ids), "sampling_params": note(dict(sampling_params or {}))}})
        return TokenOutput.model_validate(answer)


class LoopTokenizer:
    """The model's tokenizer, which lives in the trainer. It returns lists, like transformers before version 5."""

    def __init__(self, about):
        self.__dict__.update(about or {})

    def __len__(self):
        return self.vocab_size

    def apply_chat_template(self, conversation, tools=None, add_generation_prompt=False, tokenize=True, return_dict=False, **variables):
        for name, usual in (("return_tensors", None), ("padding", False), ("truncation", False), ("max_length", None)):
            if variables.pop(name, usual) not in (usual, None):
                raise ValueError("apply_chat_template gives lists of ids here, without %s" % name)
        if list(conversation) == [{}]:
            # An idiom of verl's loops: the text that a template writes before the first message.
            empty = {"role": "user", "content": ""}
            one, two = [self.apply_chat_template([empty] * count, tools, False, tokenize, **variables) for count in (1, 2)]
            return one[: 2 * len(one) - len(two)]
        tools = [tool.model_dump() if hasattr(tool, "model_dump") else tool for tool in tools or ()]
        asked = {"messages": note(list(conversation)), "tools": note(tools), "add_generation_prompt": bool(add_generation_prompt)}
        answer = ask_trainer({"tokenize": dict(asked, op="render", tokenize=bool(tokenize), variables=note(variables))})
        return encoding(answer) if tokenize and return_dict else answer

    def encode(self, text, add_special_tokens=True, **_):
        return ask_trainer({"tokenize": {"op": "encode", "text": text, "add_special_tokens": bool(add_special_tokens)}})

    def decode(self, token_ids, skip_special_tokens=False, **_):
        ids = opened(token_ids)
        ids = ids_of([ids] if isinstance(ids, int) else ids)
        return ask_trainer({"tokenize": {"op": "decode", "ids": ids, "skip_special_tokens": bool(skip_special_tokens)}})

    def batch_decode(self, sequences, **options):
        return [self.decode(ids, **options) for ids in sequences]

    def convert_tokens_to_ids(self, tokens):
        ids = ask_trainer({"tokenize": {"op": "token_ids", "tokens": [tokens] if isinstance(tokens, str) else list(tokens)}})
        return ids[0] if isinstance(tokens, str) else ids

    def __call__(self, text, add_special_tokens=True, **_):
        if not isinstance(text, str):
            ids = [self.encode(one, add_special_tokens=add_special_tokens) for one in text]
            return Section(input_ids=ids, attention_mask=[[1] * len(one) for one in ids])
        return encoding(self.encode(text, add_special_tokens=add_special_tokens))


def encoding(ids):
    return Section(input_ids=ids, attention_mask=[1] * len(ids))


class Wrapped:
    """verl's wrapper for constructor arguments: settings or tools, in an object that Hydra leaves unchanged."""

    def __init__(self, config=None, tools=None):
        self.config, self.tools = config, tools


def loop_class(entry):
    """Returns the class of an agent loop: by its dotted name, or by its registered name."""
    if entry.get("_target_") == VERIFIERS:
        return VerifiersLoop
    if entry.get("_target_"):
        return dotted(entry["_target_"], "agent loop")
    if entry["name"] not in AGENT_LOOPS:
        raise Unusable("no agent loop is registered as %s; there are %s" % (entry["name"], ", ".join(AGENT_LOOPS) or "none"))
    return AGENT_LOOPS[entry["name"]]


def tools_of_verl(*_):
    """Returns verl's tools from the settings; the first argument of verl's function is their file."""
    return [one.tool for one in HOST.tools.values() if isinstance(one, (VerlTool, VerlFunction))]


def run_loop(name, sampling_params, row, tokenizer, request_id):
    """Runs an agent loop to its end; its requests are sent as replies before that."""
    made, kwargs = HOST.loops[name]
    config = HOST.loop_config

    async def whole():
        data = Wrapped(config.get("data", Section()))
        loop = made(
            trainer_config=Wrapped(config), server_manager=ServerManager(), tokenizer=LoopTokenizer(tokenizer), processor=None,
            dataset_cls=None, data_config=data, tools=Wrapped(tools=tools_of_verl()), **kwargs
        )
        return await loop.run(sampling_params, **row)

    outputs = run_async(whole())
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    if not outputs or not all(hasattr(output, "model_dump") for output in outputs):
        raise Unusable("run of the agent loop %s returned %s: return an AgentLoopOutput" % (name, shown(outputs)))
    if any(part is not None and len(part) for output in outputs for part in (output.multi_modal_data or {}).values()):
        raise Unusable("run of the agent loop %s returned multi_modal_data: only text can be in a conversation" % name)
    return {"done": [loop_output(output) for output in outputs]}


def loop_output(output):
    """Converts an output for the trainer."""
    return {
        "prompt_ids": ids_of(output.prompt_ids),
        "response_ids": ids_of(output.response_ids),
        "response_mask": ids_of(output.response_mask),
        "reward_score": None if output.reward_score is None else measure(output.reward_score, "reward_score"),
        "num_turns": output.num_turns,
        "extra_fields": note(output.extra_fields),
    }
