"""Writes tests/golden/chat-templates.json: transformers' renderings of conversations with the templates next to it.

    pip install transformers==5.24.0 jinja2==3.1.6
    python scripts/goldens/golden_chat_templates.py > tests/golden/chat-templates.json

With folders of further templates (*.jinja), goldens of those alone. The published templates of Llama and Gemma have their own
licences and are not here; TRL ships copies:

    pip install trl==1.16.0
    mkdir more && python scripts/goldens/golden_chat_templates.py SITE_PACKAGES/trl/chat_templates > more/chat-templates.json
    BURNISH_GOLDENS=$PWD/more cargo test --release --test algorithms chat_templates

Every conversation is rendered twice, without and with the generation prompt; if the second text continues the first, only the
addition is written. The output of strftime_now is written as «FORMAT».
"""

import json
import pathlib
import sys

from transformers.utils import chat_template_utils

ROOT = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "chat-templates"


def say(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, id="abcdef123"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Weather of a \"city\" <now> & it's é",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "enum": ["Köln", "Oslo"]},
                    "days": {"type": "integer", "default": 1, "minimum": 0.5},
                },
                "required": ["city"],
                "additionalProperties": False,
                "nothing": None,
                "empty": {},
            },
        },
    },
    {"type": "function", "function": {"name": "noop", "description": "", "parameters": {}}},
]
ASK, TWO = say("user", "What is 2+3?"), say("assistant", "5")
TOOL_TALK = [
    say("user", "Weather?"),
    say("assistant", "", tool_calls=[call("weather", {"city": "Köln", "days": 2, "at": 1.5, "tags": [], "x": None})]),
    say("tool", '{"sky": "clear"}', name="weather", tool_call_id="abcdef123"),
    say("assistant", "Clear."),
]
CONVERSATIONS = {
    "user": {"messages": [ASK]},
    "system": {"messages": [say("system", "Be brief."), ASK]},
    "turns": {"messages": [say("system", "S"), ASK, TWO, say("user", "And 4?"), say("assistant", "Six."), say("user", "No.")]},
    "answered": {"messages": [ASK, TWO]},
    "characters": {"messages": [say("system", "é ß 漢字 😀 \u00a0"), say("user", "'single' \"double\" \\back\\n {{ x }} {% y %} <b>&amp;\t\r\n\u2028 end")]},
    "spaces": {"messages": [say("system", "  s \n"), say("user", "\n\n  a  b\n \t"), say("assistant", "\n c \n"), say("user", " \x1c\x85d ")]},
    "empty": {"messages": [say("system", ""), say("user", ""), say("assistant", ""), say("user", "x")]},
    "tokens": {"messages": [say("user", "<|im_end|></s><think>a</think>")]},
    "thinking": {"messages": [ASK, say("assistant", "<think>\n2 and 3\n</think>\n\n5"), say("user", "Sure?"), say("assistant", "<think>\nyes\n</think>\n\nYes."), ]},
    "thinking-then": {"messages": [ASK, say("assistant", "<think>\n2 and 3\n</think>\n\n5"), say("user", "Sure?")]},
    "reasoning": {"messages": [ASK, say("assistant", "\n5", reasoning_content="\nby hand\n"), ]},
    "reasoning-alias": {"messages": [ASK, say("assistant", "5", reasoning="by hand"), ]},
    "no-thinking": {"messages": [ASK], "kwargs": {"enable_thinking": False}},
    "do-think": {"messages": [ASK], "kwargs": {"enable_thinking": True}},
    "tools": {"messages": [say("system", "S"), ASK], "kwargs": {"tools": TOOLS}},
    "tools-alone": {"messages": [ASK], "kwargs": {"tools": TOOLS[:1]}},
    "no-tools": {"messages": [ASK], "kwargs": {"tools": []}},
    "tool-call": {"messages": TOOL_TALK, "kwargs": {"tools": TOOLS[:1]}},
    "tool-call-asked": {"messages": TOOL_TALK[:3]},
    "tool-call-null": {"messages": [ASK, {**TOOL_TALK[1], "content": None}, TOOL_TALK[2], say("user", "?")]},
    "tool-call-bare": {"messages": [ASK, {k: v for k, v in TOOL_TALK[1].items() if k != "content"}, TOOL_TALK[2]]},
    "tool-call-text": {"messages": [ASK, say("assistant", "Look:", tool_calls=[call("weather", '{"city": "Oslo"}'), call("noop", "{}", "ABCDEF456")]), TOOL_TALK[2], say("tool", "done", tool_call_id="ABCDEF456"), say("assistant", "Done.")]},
    "tool-call-bad-id": {"messages": [ASK, say("assistant", "", tool_calls=[call("noop", {}, "1")])]},
    "builtin-tools": {"messages": TOOL_TALK, "kwargs": {"builtin_tools": ["weather", "code_interpreter"], "builtins": ["weather", "interpreter"]}},
    "tools-later": {"messages": [ASK], "kwargs": {"tools": TOOLS, "tools_in_user_message": False, "tools_first": False, "date_string": "1 May", "today": "1 May"}},
    "system-tools": {"messages": [say("system", "S", tools="[1]"), ASK]},
    "parts": {"messages": [say("system", [{"type": "text", "text": "S"}]), say("user", [{"type": "text", "text": " a "}, {"type": "image"}, {"type": "text", "text": "b"}])]},
    "structured-result": {"messages": [ASK, TOOL_TALK[1], say("tool", {"sky": ["clear", 1.0, None]}, tool_call_id="abcdef123")]},
    "null": {"messages": [say("user", None)]},
    "number": {"messages": [say("user", 3.0)]},
    "two-users": {"messages": [ASK, ASK]},
    "assistant-first": {"messages": [TWO, ASK]},
    "late-system": {"messages": [ASK, say("system", "S"), TWO]},
    "odd-role": {"messages": [ASK, say("critic", "No.")]},
    "switches": {"messages": [ASK], "kwargs": {"thinking": True, "thinking_budget": 512, "reasoning_effort": "high", "tools": TOOLS}},
    "no-budget": {"messages": [say("system", "S /no_think"), ASK], "kwargs": {"thinking": False, "thinking_budget": 0}},
    "other-tools": {"messages": [ASK], "kwargs": {"xml_tools": TOOLS, "python_tools": ["def f(x): ..."], "available_tools": TOOLS}},
    "thinking-tools": {"messages": [ASK, {**TOOL_TALK[1], "reasoning_content": "Look it up."}, *TOOL_TALK[2:], say("user", "Thanks."), say("assistant", "Welcome.", reasoning_content="Polite.")]},
    "functions": {"messages": [say("system", "S", functions="[1]"), say("user", "?", functions="[2]"), {"role": "assistant", "content": None, "function_calls": "f(x=1)"}, say("environment", "12"), say("assistant", "12")]},
}


def render(source, tokens, conversation, prompt):
    compiled = chat_template_utils._compile_jinja_template(source)
    compiled.globals["strftime_now"] = lambda form: f"«{form}»"
    given = {"tools": None, "documents": None, **conversation.get("kwargs", {})}
    try:
        [text], _ = chat_template_utils.render_jinja_template(
            [conversation["messages"]], chat_template=source, add_generation_prompt=prompt, **tokens, **given
        )
        return {"text": text}
    except Exception as error:
        # Raised by the template, with a message to pass on; or by Python. In minijinja a loop over none is empty.
        raised = type(error).__name__ == "TemplateError"
        over_none = str(error) == "'NoneType' object is not iterable"
        return {"error": str(error) if raised else None, **({"may_render": True} if over_none else {})}


def case(source, tokens, name):
    plain, prompted = (render(source, tokens, CONVERSATIONS[name], prompt) for prompt in (False, True))
    if "error" in plain or "error" in prompted:
        return {"plain": plain, "prompted": prompted} if plain != prompted else {"plain": plain}
    added = prompted["text"].removeprefix(plain["text"])
    continues = prompted["text"].startswith(plain["text"])
    return {"plain": plain, "added": added} if continues else {"plain": plain, "prompted": prompted}


def main(folders):
    templates = {}
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    for path in sorted(path for folder in folders or [ROOT] for path in pathlib.Path(folder).glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        chosen = ["spaces"] if path.stem == "own-python" else CONVERSATIONS
        templates[path.stem] = {**({"source": source} if folders else {}), "cases": {n: case(source, tokens, n) for n in chosen}}
    head = {"tokens": tokens, "conversations": CONVERSATIONS}
    lines = [f'"{name}": {json.dumps(t, ensure_ascii=False)}' for name, t in templates.items()]
    print(json.dumps(head, ensure_ascii=False)[:-1] + ', "templates": {\n' + ",\n".join(lines) + "\n}}")


main(sys.argv[1:])
