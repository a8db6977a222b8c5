"""Writes tests/golden/turns.json: the parts of a conversation that TRL trains on, with its training variants of published chat
templates.

    pip install trl==1.16.0 transformers==5.24.0 jinja2==3.1.6
    python scripts/goldens/golden_turns.py > tests/golden/turns.json

With `--all`, every template of TRL that has a variant, sources included; the licences of some allow no copy here:

    mkdir more && python scripts/goldens/golden_turns.py --all > more/turns.json
    BURNISH_GOLDENS=$PWD/more cargo test --release --test algorithms turns_are_trls

For each template and conversation: transformers' rendering of the whole with the published template, the parts that the variant
marks as the assistant's, by message, and whether the variant writes the same whole. No text of TRL's variants is stored.
"""

import datetime
import json
import pathlib
import sys

import trl
from transformers.utils.chat_template_utils import render_jinja_template

THEIRS = pathlib.Path(trl.__file__).parent / "chat_templates"
OURS = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "chat-templates"
# Files next to the golden, by TRL's name.
FILES = {
    "qwen2_5": "qwen2.5", "qwen3": "qwen3", "qwen3_5_think": "qwen3.5", "gptoss": "gpt-oss", "glm4moe": "glm4.5", "phi3": "phi3",
    "phi3_5": "phi3.5", "deepseekv3": "deepseek-v3", "deepseek_r1_distill": "deepseek-r1", "qwen3_6": "qwen3.6",
    "qwen3_instruct_2507": "qwen3-2507",
}
DAY = datetime.date(2026, 1, 2)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
TOOL = {
    "type": "function",
    "function": {
        "name": "multiply",
        "description": "Multiplies.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer", "description": "x"}}, "required": ["a"]},
    },
}


def user(text):
    return {"role": "user", "content": text}


def says(text, **more):
    return {"role": "assistant", "content": text, **more}


def calls(**arguments):
    return [{"type": "function", "id": "abcdefghi", "function": {"name": "multiply", "arguments": arguments}}]


ASKS, ANSWER = user("What is 3 times 4?"), {"role": "tool", "name": "multiply", "tool_call_id": "abcdefghi", "content": "12"}
CONVERSATIONS = {
    "one turn": ([user("What is 12 + 30?"), says("The answer is 42.")], None),
    "two turns": ([user("What is 12 + 30?"), says("The answer is 42."), user("And 1 + 1?"), says("2, of course.")], None),
    "system": ([{"role": "system", "content": "Be brief."}, user("Hi"), says("Hello."), user("Bye"), says("See you.")], None),
    "tools": ([ASKS, says("", tool_calls=calls(a=3)), ANSWER, says("It is 12."), user("Thanks"), says("Welcome.")], [TOOL]),
    "thoughts in text": ([user("One?"), says("<think>\nfirst\n</think>\n\nYes."), user("Two?"), says("<think>\nsecond\n</think>\n\nNo.")], None),
    "thoughts": ([user("One?"), says("Yes.", reasoning_content="first"), user("Two?"), says("No.", reasoning_content="second")], None),
    "line break": ([user("One?"), says("\nYes.\n"), user("Two?"), says("\n\nNo.")], None),
    "same text": ([user("Yes."), says("Yes."), user("Yes."), says("Yes.")], None),
}


def render(source, messages, tools, marks=False):
    messages = json.loads(json.dumps(messages))
    texts, spans = render_jinja_template(
        [messages], tools=tools, chat_template=source, add_generation_prompt=False, return_assistant_tokens_mask=marks, **TOKENS
    )
    text, spans = texts[0], spans[0] if marks else None
    # Today's date; the test has another date of the same length.
    for form in ["%Y-%m-%d", "%d %b %Y"]:
        text = text.replace(datetime.date.today().strftime(form), DAY.strftime(form))
    return text, spans


def case(published, variant, messages, tools):
    try:
        text, _ = render(published, messages, tools)
    except Exception:
        return None
    try:
        theirs, spans = render(variant, messages, tools, marks=True)
    except Exception:
        theirs, spans = "", []
    # Some variants mark the end of a turn by itself.
    parts = []
    for begin, end in spans:
        if parts and begin == end_before:
            parts[-1] += theirs[begin:end]
        elif begin < end:
            parts.append(theirs[begin:end])
        end_before = end
    return {"text": text, "marked": parts, "same": text == theirs}


def main():
    everything = "--all" in sys.argv[1:]
    templates = {}
    for path in sorted(THEIRS.glob("*_training.jinja")):
        name = path.name.removesuffix("_training.jinja")
        source = (THEIRS / f"{name}.jinja").read_text()
        if not everything and (name not in FILES or (OURS / f"{FILES[name]}.jinja").read_text() != source):
            continue
        cases = {title: case(source, path.read_text(), *it) for title, it in CONVERSATIONS.items()}
        cases = {title: it for title, it in cases.items() if it is not None}
        templates[name] = {"source": source} if everything else {"file": FILES[name]}
        templates[name]["cases"] = cases
    conversations = {title: {"messages": messages, "tools": tools} for title, (messages, tools) in CONVERSATIONS.items()}
    print(json.dumps({"tokens": TOKENS, "conversations": conversations, "templates": templates}, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
