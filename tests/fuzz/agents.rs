//! Turns of models, parsed in every format of calls and by every response template.

use burnish::agent::calls::response::{TEMPLATES, parse_response};
use burnish::agent::calls::{FORMATS, parse};
use serde_json::{Value, json};

use crate::Target;

const TEXTS: [&str; 16] = [
    "Look.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"\\u00e9 🙂\", \"k\": 1e3}}\n</tool_call><|im_end|>",
    "<think>a</think><tool_call>\n<function=search>\n<parameter=ids>\n[1, 'a', (0x1F, None)]\n</parameter>\n</function>\n</tool_call>",
    "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.search <|constrain|>json<|message|>{}<|call|>",
    "<|start|>assistant to=functions.search<|channel|>commentary json<|message|>{\"query\": \"a\"}<|call|>",
    "<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>a</arg_value>\n</tool_call><|observation|>",
    "a<seed:tool_call><function=search><parameter=query>1</parameter></function></seed:tool_call>",
    "<minimax:tool_call><invoke name=\"search\"><parameter name=\"k\">[1]</parameter></invoke></minimax:tool_call>",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    "<｜DSML｜tool_calls><｜DSML｜invoke name=\"search\"><｜DSML｜parameter name=\"k\" string=\"false\">3</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>",
    "<|tool_call>call:search{query:<|\"|>a<|\"|>,k:3}<tool_call|>",
    "{\"name\": \"search\", \"parameters\": {\"query\": \"a;\"}}; {\"name\": \"search\", \"arguments\": {}}<|eot_id|>",
    "a[TOOL_CALLS][{\"name\": \"search\", \"arguments\": {}}][TOOL_CALLS]search{\"k\": 1}</s>",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "<|tool_call_start|>[search(query='a', ids=[1, {'b': -2}])]<|tool_call_end|>",
    "<|tool_call|>[{\"name\": \"search\", \"arguments\": {\"k\": 1}}]<|end_of_text|>",
    "```tool_code\nprint(search(query='''a''', k=1_0))\n```",
];

/// A tool with a parameter of every type that a format parses specially.
fn tools() -> Vec<Value> {
    let kinds =
        [("query", "string"), ("k", "integer"), ("ids", "array"), ("filters", "object"), ("p", "number"), ("b", "boolean")];
    let properties: serde_json::Map<String, Value> =
        kinds.map(|(name, kind)| (name.to_owned(), json!({"type": kind}))).into_iter().collect();
    let parameters = json!({"type": "object", "properties": properties, "required": ["query"]});
    vec![json!({"type": "function", "function": {"name": "search", "parameters": parameters}})]
}

pub(crate) fn turns() -> Target {
    Target {
        name: "turns",
        seeds: || TEXTS.map(|text| text.as_bytes().to_vec()).to_vec(),
        words: &[
            "<tool_call>",
            "</tool_call>",
            "<think>",
            "</think>",
            "<function=",
            "<parameter=",
            "<parameter=ids>",
            "<arg_key>",
            "<arg_key>k</arg_key><arg_value>",
            "<invoke name=\"",
            "<|tool_call_begin|>",
            "<|tool_call>call:a{",
            "<|\"|>",
            "a:",
            "a=[",
            "[TOOL_CALLS]",
            "f(a=",
            "{\"a\":",
            "{",
            "[",
            "[{",
            "(",
            "<",
            "\"",
            "'",
            "\\",
            "\\ud800",
            "-",
            "0x1",
            "#",
            "\n",
            " ",
            "é",
            "<|x|>",
            "```tool_code\n",
            "<|im_end|>",
        ],
        cases: 300,
        read: |input, _| {
            let (text, tools) = (String::from_utf8_lossy(input), tools());
            for format in FORMATS {
                let parsed = parse(format, &text, &tools, true);
                assert!(parsed.calls.len() + parsed.unreadable <= text.len(), "more calls than text");
                _ = parse(format, &text, &tools, false);
            }
            for template in TEMPLATES {
                parse_response(template.name, "<|im_start|>assistant\n", &text, &tools).unwrap();
            }
        },
    }
}
