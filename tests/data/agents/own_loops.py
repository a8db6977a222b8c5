"""Agent loops as users of verl write them."""

import json

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput
from verl.experimental.agent_loop.tool_parser import ToolParser
from verl.tools.function_tool import normalize_function_tool_return
from verl.utils.profiler import simple_timer


class OneTurn(AgentLoopBase):
    """A prompt by the tokenizer's own method, and one turn."""

    async def run(self, sampling_params, **kwargs):
        prompt = kwargs["prompt"]
        if isinstance(prompt, str):
            ids = self.tokenizer.encode(prompt)
        else:
            ids = self.tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=True)
        metrics = {}
        with simple_timer("generate_sequences", metrics):
            output = await self.server_manager.generate(request_id="1", prompt_ids=ids, sampling_params=sampling_params)
        length = self.rollout_config.response_length
        return AgentLoopOutput(
            prompt_ids=ids,
            response_ids=output.token_ids[:length],
            response_mask=[1] * len(output.token_ids[:length]),
            response_logprobs=output.log_probs[:length],
            num_turns=2,
            metrics=metrics,
        )


class React(AgentLoopBase):
    """Turns with calls of a tool, whose answers are appended: what verl's tool agent does, in short."""

    def __init__(self, *args, name, tools, deepest=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.deepest = deepest
        self.tools = {tool.name: tool for tool in tools.tools}
        self.schemas = [tool.tool_schema.model_dump(exclude_unset=True, exclude_none=True) for tool in tools.tools]
        self.parser = ToolParser.get_tool_parser(self.rollout_config.multi_turn.format, self.tokenizer)
        assert name == "react" and self.tokenizer.convert_tokens_to_ids("<|im_end|>") == self.tokenizer.eos_token_id

    async def run(self, sampling_params, raw_prompt, **kwargs):
        messages = list(raw_prompt)
        ids = await self.ct_build_initial_tokens(messages, tools=self.schemas)
        begin, mask, turns, user_turns, room = len(ids), [], 0, 0, self.rollout_config.response_length
        while True:
            output = await self.server_manager.generate(request_id="1", prompt_ids=ids, sampling_params=sampling_params)
            merged, mask, _ = await self.ct_merge_assistant_token(ids, output.token_ids, mask)
            ids, turns = merged.token_ids, turns + 1
            if len(mask) >= room or turns >= self.deepest:
                break
            content, calls = await self.parser.extract_tool_calls(output.token_ids, [tool.tool_schema for tool in self.tools.values()])
            if not calls:
                break
            function = {"name": calls[0].name, "arguments": calls[0].arguments}
            before = messages + [{"role": "assistant", "content": content, "tool_calls": [{"type": "function", "function": function}]}]
            messages = before + [{"role": "tool", "content": await self.answer(calls[0])}]
            merged, longer, _ = await self.ct_merge_context_msg(before, messages, ids, mask, tools=self.schemas)
            if len(longer) >= room:
                break
            ids, mask, user_turns = merged.token_ids, longer, user_turns + 1
        return AgentLoopOutput(
            prompt_ids=ids[:begin],
            response_ids=ids[begin:][:room],
            response_mask=mask[:room],
            num_turns=turns + user_turns + 1,
            metrics={},
        )

    async def answer(self, call):
        if call.name not in self.tools:
            return f"Unknown function '{call.name}'. Available tools: {list(self.tools)}"
        try:
            arguments = json.loads(call.arguments)
        except json.JSONDecodeError as error:
            return f"Invalid JSON in arguments for '{call.name}': {error}"
        try:
            return normalize_function_tool_return(await self.tools[call.name].call(arguments))[0].text
        except Exception as error:
            return f"Error executing tool '{call.name}': {error}"


class Scored(OneTurn):
    """Two attempts with other parameters, of which the second is returned with a score of its own."""

    async def run(self, sampling_params, **kwargs):
        ids = self.tokenizer.apply_chat_template(kwargs["raw_prompt"], add_generation_prompt=True)
        for temperature in (0.5, 2.0):
            params = dict(sampling_params, temperature=temperature, max_tokens=3)
            output = await self.server_manager.generate(request_id="1", prompt_ids=ids, sampling_params=params)
            assert 1 <= len(output.token_ids) <= 3
        score = 0.25 * len(output.token_ids)
        text = self.tokenizer.decode(output.token_ids, skip_special_tokens=True)
        return AgentLoopOutput(
            prompt_ids=ids, response_ids=output.token_ids, response_mask=[1] * len(output.token_ids), reward_score=score,
            num_turns=2, metrics={}, extra_fields={"text": text, "turn_scores": [score], "tool_rewards": []},
        )


class Inexact(OneTurn):
    """What sampled tokens must not be: made by the loop itself."""

    async def run(self, sampling_params, **kwargs):
        output = await super().run(sampling_params, **kwargs)
        output.response_ids = [(token + 1) % 10 for token in output.response_ids]
        return output


class Asking(OneTurn):
    """Asks for what a turn cannot have."""

    async def run(self, sampling_params, **kwargs):
        return await super().run(dict(sampling_params, guided_regex="[0-9]+"), **kwargs)
