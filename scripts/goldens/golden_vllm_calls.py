"""Writes tests/golden/agents/tool_parsers_vllm.json: turns of a model as vLLM's tool parsers read them, whole, broken and cut.

    pip install transformers==5.24.0 partial-json-parser openai cohere_melody==0.15.3
    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl 'vllm/tool_parsers/*' -d new
    pip download --no-deps vllm==0.14.1 && unzip -q vllm-0.14.1-*.whl 'vllm/tool_parsers/*' -d old
    python scripts/goldens/golden_vllm_calls.py new old > tests/golden/agents/tool_parsers_vllm.json

The parsers are plain Python: everything else that they import from vLLM is replaced by plain classes. `old` has the parsers of Granite 3
and Mistral, which later versions read by a state machine over tokens. Cohere's turns are read by cohere_melody, as in vLLM.
"""

import importlib
import importlib.abc
import importlib.machinery
import json
import sys
import types


class Record:
    """Stands for vLLM's pydantic classes."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __class_getitem__(cls, _):
        return cls


class Stub(types.ModuleType):
    def __getattr__(self, name):
        if name == "__path__":
            return []
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "init_logger":
            return lambda *_: Stub("logger")
        if name == "VLLM_TOOL_PARSE_REGEX_TIMEOUT_SECONDS":
            return 5
        if name.islower():
            return lambda *given, **_: given[0] if given else None
        return type(name, (Record,), {})


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ("vllm", "mistral_common", "ijson") and not name.startswith("vllm.tool_parsers"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Stub(spec.name)

    def exec_module(self, module):
        pass


class Tokenizer:
    def __init__(self, version=0):
        self.version = version

    def get_vocab(self):
        return {"[TOOL_CALLS]": 1, "<|tool_call_start|>": 2, "<|tool_call_end|>": 3, "<tool_call>": 4, "</tool_call>": 5}

    def encode(self, *_, **__):
        return [1]


def parsers(folder, names):
    for name in [name for name in sys.modules if name.startswith("vllm")]:
        del sys.modules[name]
    package = Stub("vllm.tool_parsers")
    package.__path__ = [f"{folder}/vllm/tool_parsers"]
    sys.modules["vllm.tool_parsers"] = package
    for key, (module, cls, *version) in names.items():
        found = getattr(importlib.import_module(f"vllm.tool_parsers.{module}_tool_parser"), cls)

        def read(text, found=found, version=version):
            parser = found(Tokenizer())
            if version:
                parser._is_pre_v11 = version[0] < 11
            read = parser.extract_tool_calls(text, Record(tools=None, tool_choice="auto"))
            return read.content, [(call.function.name, call.function.arguments) for call in read.tool_calls]

        yield key, read


def cohere(version):
    from cohere_melody import PyFilter, PyFilterOptions

    def read(text):
        read = PyFilter(getattr(PyFilterOptions(), version)()).process_full_text(text)
        return read.content, [(call.name, call.arguments) for call in read.tool_calls]

    return read


NEW = {
    "lfm2": ("lfm2", "Lfm2ToolParser"),
    "olmo3": ("olmo3", "Olmo3PythonicToolParser"),
    "phi4_mini": ("phi4mini", "Phi4MiniJsonToolParser"),
    "functiongemma": ("functiongemma", "FunctionGemmaToolParser"),
    "granite4": ("granite4", "Granite4ToolParser"),
}
OLD = {
    "granite": ("granite", "GraniteToolParser"),
    "mistral v3": ("mistral", "MistralToolParser", 3),
    "mistral v11": ("mistral", "MistralToolParser", 11),
}
CALL, NESTED = '{"name": "f", "arguments": {"x": 1, "city": "Köln"}}', '{"name": "g", "arguments": {"a": {"b": "c"}, "t": "q\\"}\'"}}'
LISTED = '{"name": "g", "arguments": {"a": [1, {"b": []}], "t": "]"}}'
PYTHONIC = ["f(x=1, city='Köln')", "f()", "g(a=[1, 2.5, -3], b={'c': None, 'd': True}, e=\"it's\")", "api.f(x=null, y=false)"]
E, C = "<escape>", "<start_function_call>call:"
TEXTS = {
    "lfm2": [
        *(f"<|tool_call_start|>[{one}]<|tool_call_end|>" for one in [*PYTHONIC, ", ".join(PYTHONIC[:3])]),
        "Let me look.\n<|tool_call_start|>[f(x=1)]<|tool_call_end|>",
        " <|tool_call_start|> [f(x=1)] <|tool_call_end|> Then this. ",
        "a <|tool_call_start|>[f(x=1)]<|tool_call_end|>f(x=1)]<|tool_call_end|> b",
        "<|tool_call_start|>[]<|tool_call_end|>",
        "<|tool_call_start|>f(x=1)<|tool_call_end|>",
        "<|tool_call_start|>[f(x=open)]<|tool_call_end|>",
        "<|tool_call_start|>[f(x=1) g()]<|tool_call_end|>",
        "<|tool_call_start|>[f(t='[x](y), g(z=1)')]<|tool_call_end|>",
        "[f(x=1)]",
        "No call.",
        "",
    ],
    "olmo3": [
        *(f"<function_calls>{one}</function_calls>" for one in [*PYTHONIC, "\n" + "\n".join(PYTHONIC[:3]) + "\n"]),
        "I look.\n<function_calls>\nf(x=1)\n</function_calls>",
        "<function_calls>\nf(x=open)\n</function_calls>",
        "<function_calls>\n\n</function_calls>",
        "<function_calls>\nf(x=1) g()\n</function_calls>",
        "f(x=1)\ng(y='a')",
        "No call.",
        "This is f(x).",
        "",
    ],
    "phi4_mini": [
        *(f"functools[{one}]" for one in [CALL, f"{CALL}, {NESTED}", '{"name": "f", "parameters": {"x": 1}}', '{"name": "f"}']),
        f"I look. functools[{CALL}] Then.",
        "functools[{\"name\": 1}]",
        "No functools here.",
        "",
    ],
    "functiongemma": [
        f"{C}f{{city:{E}Köln{E},x:{E}1{E}}}<end_function_call>",
        f"{C}f{{}}<end_function_call>",
        f"{C}f{{a:{E}[1, 2]{E},b:{E}{{\"c\": null}}{E},d:{E}x, y: z{E}}}<end_function_call>",
        f"{C}f{{x:{E}1{E}}}<end_function_call>{C}g{{y:{E}a\nb{E}}}<end_function_call>",
        f" Let me look. {C}f{{x:{E}1{E}}}<end_function_call> after",
        f"{C}f{{x:1}}<end_function_call>",
        f"{C}f{{x:{E}1{E}}}",
        f"{C}f(x)<end_function_call>",
        f"{C}<end_function_call>",
        "<start_function_call>",
        "No call.",
        "",
    ],
    "granite4": [
        *(f"<tool_call>{one}</tool_call>" for one in [CALL, NESTED, LISTED, f"\n{CALL}\n"]),
        f"<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{LISTED}\n</tool_call>",
        f"I look.\n<tool_call>\n{CALL}\n</tool_call>\nThen.",
        "No call.",
        "",
    ],
    "granite": [
        *(f"<|tool_call|>[{one}]" for one in [CALL, NESTED, LISTED, f"{CALL}, {LISTED}", '{"name": "f"}', "1"]),
        f"<tool_call>[{CALL}]",
        f"[{CALL}]",
        f" <|tool_call|> [{CALL}] ",
        f"<|tool_call|>{CALL}",
        f"I look. <|tool_call|>[{CALL}]",
        "<|tool_call|>[]",
        "[1] is a source.",
        "No call.",
        "",
    ],
    "mistral v3": [
        *(f"[TOOL_CALLS] [{one}]" for one in [CALL, NESTED, LISTED, f"{CALL}, {LISTED}"]),
        f"I look.[TOOL_CALLS][{CALL}]",
        f"[TOOL_CALLS][{CALL}",
        "[TOOL_CALLS]",
        "No call.",
        "",
    ],
    "mistral v11": [
        '[TOOL_CALLS]f{"x": 1, "city": "Köln"}',
        '[TOOL_CALLS]f{"x": 1}[TOOL_CALLS]g{"a": {"b": []}}',
        'I look.[TOOL_CALLS]f{}',
        "No call.",
        "",
    ],
    "cohere": [
        f"<|START_THINKING|>I look.<|END_THINKING|><|START_ACTION|>[\n{one}\n]<|END_ACTION|>"
        for one in [
            '    {"tool_call_id": "0", "tool_name": "f", "parameters": {"x": 1, "city": "Köln"}}',
            '    {"tool_call_id": "0", "tool_name": "f", "parameters": {}},\n    {"tool_call_id": "1", "tool_name": "g", "parameters": {"a": [1, {"b": "]"}]}}',
        ]
    ]
    + [
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {"x": 1}}]<|END_ACTION|>',
        "<|START_THINKING|>Easy.<|END_THINKING|><|START_RESPONSE|>It is 12.<|END_RESPONSE|>",
        "<|START_RESPONSE|>It is 12.<|END_RESPONSE|>",
        "It is 12.",
        "",
    ],
}
# Texts of these formats are also cut: a turn that reached its token limit.
CUT = ["lfm2", "olmo3", "functiongemma", "granite4", "granite"]


def cases(key, read):
    texts = list(TEXTS[key])
    if key in CUT:
        texts += [text[: len(text) * part // 8] for text in TEXTS[key][:3] for part in (3, 5, 7)]
        texts += [text[:-1] for text in TEXTS[key][:3]]
    for text in dict.fromkeys(texts):
        content, calls = read(text)
        calls = [{"name": name, "arguments": arguments} for name, arguments in calls]
        yield {"parser": key, "text": text, "content": content or "", "calls": calls}


def main(new, old):
    sys.meta_path.insert(0, Stubs())
    found = [case for folder, names in ((new, NEW), (old, OLD)) for key, read in parsers(folder, names) for case in cases(key, read)]
    found += cases("cohere", cohere("cmd3"))
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in found)
    print(f'{{"vllm": ["0.33.0", "0.14.1"], "cases": [\n{lines}\n]}}')


main(*sys.argv[1:])
