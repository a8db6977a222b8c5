"""Writes tests/golden/agents/continuation_families.json: the tokens that verl's builders append for model families that
concatenation_verl.json lacks (Gemma 4, MiniMax, DeepSeek V4), with small templates of ours instead of the models'.

    pip install transformers==5.23.0 && pip install --no-deps verl==0.9.1
    python scripts/goldens/golden_continuations.py tests/golden/agents/continuation_families.json
"""

import importlib
import importlib.util
import json
import pathlib
import sys
import tempfile
import types

from transformers import AutoTokenizer

GOLDENS = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"

# Results of tools are in the model's turn, and the token before them is the assistant's.
GEMMA4 = """{{- bos_token -}}
{%- if tools -%}{{- '<|turn>tools\\n' + tools | tojson + '<turn|>\\n' -}}{%- endif -%}
{%- for m in messages -%}
{%- set before = messages[loop.index0 - 1].role if not loop.first else '' -%}
{%- if m.role == 'tool' -%}
{{- (('<|tool_response>' if before == 'tool' else '') + 'response:' + (m.name or '?') + '{' + m.content + '}<tool_response|>') -}}
{%- else -%}
{%- if before != 'tool' or m.role != 'assistant' -%}
{{- '<|turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' -}}
{%- endif -%}
{{- m.content -}}
{%- if m.tool_calls -%}{%- for c in m.tool_calls -%}
{{- '<|tool_call>call:' + c.function.name + '{' + c.function.arguments | tojson + '}<tool_call|>' -}}
{%- endfor -%}{{- '<|tool_response>' -}}
{%- else -%}{{- '<turn|>\\n' -}}{%- endif -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|turn>model\\n' -}}{%- endif -%}"""

MINIMAX = """{%- for m in messages -%}
{{- ']~b]' + m.role + '\\n' + m.content -}}
{%- for c in m.tool_calls or [] -%}{{- '<call>' + c.function.name + '</call>' -}}{%- endfor -%}
{{- '[e~[\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- ']~b]ai\\n' -}}{%- endif -%}"""

# DeepSeek V4 has no template; this one writes prompts of messages like its encoder.
DEEPSEEK_V4 = """{{- bos_token -}}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{{- '<｜User｜>' + m.content -}}
{%- elif m.role == 'assistant' -%}{{- '<｜Assistant｜></think>' + m.content + '<｜end▁of▁sentence｜>' -}}
{%- else -%}{{- m.content -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<｜Assistant｜></think>' -}}{%- endif -%}"""

FAMILIES = {
    "gemma4": ("Gemma4ContinuousTokenBuilder", GEMMA4, "<bos>", "<turn|>",
               ["<bos>", "<|turn>", "<turn|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>"]),
    "minimax_m2": ("MiniMaxContinuousTokenBuilder", MINIMAX, None, "[e~[", ["]~b]", "[e~["]),
    "deepseek_v4": ("DeepSeekV4ContinuousTokenBuilder", DEEPSEEK_V4, "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>",
                    ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>"]),
}

TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}}}]


def call(*names, ids=()):
    calls = [{"type": "function", "function": {"name": name, "arguments": {}}} for name in names]
    for one, id in zip(calls, ids):
        one["id"] = id
    return {"role": "assistant", "content": "", "tool_calls": calls}


def tool(content, **more):
    return {"role": "tool", "content": content, **more}


def said(role, content):
    return {"role": role, "content": content}


START = [said("system", "Be terse."), said("user", "1 + 2?")]

# Messages, then turns of the assistant (a message and the end of its tokens) and the appended messages.
CASES = {
    "tool": [(call("add"), "close"), [tool("3")]],
    "two_tools": [(call("add", "mul"), "close"), [tool("3"), tool("é\n\"4\"")]],
    "by_id": [(call("add", "mul", ids=["x", "y"]), "close"), [tool("4", tool_call_id="y"), tool("3", tool_call_id="x")]],
    "by_name": [(call("add"), "open"), [tool("4", name="other")]],
    "counts_differ": [(call("add", "mul"), "close"), [tool("3")]],
    "user": [(said("assistant", "3"), "close"), [said("user", "And 4?")]],
    "user_after_cut": [(said("assistant", "3"), "open"), [said("user", "And 4?")]],
    "user_after_end_and_newline": [(said("assistant", "3"), "newline"), [said("user", "And 4?")]],
    "tool_then_user": [(call("add"), "close"), [tool("3"), said("user", "Sure?")]],
    "tool_then_user_after_response": [(call("add"), "response"), [tool("3"), said("user", "Sure?")]],
    "system": [(said("assistant", "3"), "close"), [said("system", "Go on.")]],
    "users": [(said("assistant", "3"), "close"), [said("user", "a"), said("user", "b")]],
    "assistant_first": [(said("assistant", "3"), "newline"), [said("assistant", "that is all"), said("user", "a")]],
    "two_rounds": [(call("add"), "close"), [tool("3")], (call("add"), "close"), [tool("4")], (said("assistant", "4"), "close"),
                   [said("user", "b")]],
}


def verl():
    """verl's module of builders, without the rest of verl."""
    root = pathlib.Path(importlib.util.find_spec("verl").submodule_search_locations[0]) / "utils/tokenizer"
    package = types.ModuleType("builders")
    package.__path__ = [str(root)]
    sys.modules["builders"] = package
    ids = types.ModuleType("builders.tokenizer")
    ids.normalize_token_ids = lambda ids: list(ids["input_ids"] if hasattr(ids, "keys") else ids)
    ids.build_multimodal_processor_inputs = None
    sys.modules["builders.tokenizer"] = ids
    return {**vars(importlib.import_module("builders.continuous_token")), **vars(importlib.import_module("builders.deepseek"))}


def tokenizer(template, bos, eos, special):
    base = json.loads((GOLDENS / "offline/pythia/tokenizer.json").read_text())
    first = max(token["id"] for token in base["added_tokens"]) + 1
    flags = {"special": True, "normalized": False, "lstrip": False, "rstrip": False, "single_word": False}
    added = [{"id": first + i, "content": text, **flags} for i, text in enumerate(special)]
    base["added_tokens"] += added
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": bos, "eos_token": eos}
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "tokenizer.json").write_text(json.dumps(base))
        pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(config))
        pathlib.Path(folder, "chat_template.jinja").write_text(template)
        return AutoTokenizer.from_pretrained(folder), {"bos_token": bos, "eos_token": eos, "pad_token": None, "added_tokens": added}


def turn(one, message, end, eos):
    text = message["content"] + "".join(f"<call>{c['function']['name']}</call>" for c in message.get("tool_calls", []))
    ends = {"open": "", "close": eos, "newline": eos + "\n", "response": "<|tool_response>"}
    return one.encode(text + ends[end], add_special_tokens=False)


def play(builder, one, eos, steps):
    messages, out = list(START), []
    ids = builder.build_initial_tokens(messages, tools=TOOLS)
    case = {"messages": START, "tools": TOOLS, "prompt_ids": ids, "steps": out}
    mask, log_probs, start = [], [], len(ids)
    for step in steps:
        if isinstance(step, tuple):
            message, end = step
            new = turn(one, message, end, eos)
            result = builder.merge_assistant_tokens(ids, new)
            own = [-0.001 * (i + 1) for i in range(len(new))]
            mask, log_probs = builder.align_response_metadata(result, mask, log_probs, assistant_logprobs=own)
            out.append({"assistant": message, "token_ids": new, "log_probs": own})
            messages = messages + [message]
        else:
            try:
                result = builder.merge_context_tokens(messages, messages + step, ids, tools=TOOLS)
            except Exception as error:
                out.append({"context": step, "error": {"type": type(error).__name__, "message": str(error)}})
                break
            appended = result.token_ids[len(result.token_ids) - result.appended_token_count:] if result.appended_token_count else []
            out.append({"context": step, "appended_ids": appended, "inserted_ids": result.inserted_token_ids,
                        "removed_prefix_tokens": result.removed_prefix_token_count})
            mask, log_probs = builder.align_response_metadata(result, mask, log_probs)
            messages = messages + step
        ids = result.token_ids
    return {**case, "response_ids": ids[start:], "response_mask": mask, "response_log_probs": log_probs}


def main(out):
    builders = verl()
    file = {"verl": "0.9.1", "tokenizers": {}, "templates": {}, "cases": []}
    for family, (name, template, bos, eos, special) in FAMILIES.items():
        one, file["tokenizers"][family] = tokenizer(template, bos, eos, special)
        file["templates"][family] = template
        for case, steps in CASES.items():
            if steps[0][1] == "response" and family != "gemma4":
                continue
            # DeepSeek V4 writes tools before the prompt's messages, which its template here leaves out.
            builder = builders[name](one)
            if family == "deepseek_v4":
                builder.build_initial_tokens = lambda messages, tools=None: builder._encode(messages, tools=None, add_bos_token=True)
            file["cases"].append({"case": case, "template": family, "model_type": family, **play(builder, one, eos, steps)})
    text = json.dumps(file, ensure_ascii=False)
    pathlib.Path(out).write_text(text.replace('{"case"', '\n{"case"') + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
