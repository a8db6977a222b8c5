//! The fields of requests to `trainer serve`, and values for them: right, wrong, extreme and huge.

use proptest::prelude::*;
use proptest::sample::select;

use crate::edits::NUMBERS;

/// A field, and right values for it. The test `every_field_is_tried` compares the names with those that the server reads.
pub(crate) const FIELDS: &[(&str, &[&str])] = &[
    ("model", &["\"data/calculator/model\"", "\"other\"", "null"]),
    (
        "messages",
        &[
            r#"[{"role":"system","content":"Be brief."},{"role":"user","content":"7+5="}]"#,
            r#"[{"role":"user","content":[{"type":"text","text":"1"},{"type":"text","text":"+1="}]}]"#,
            r#"[{"role":"user","content":"7+5="},{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function",
            "function":{"name":"calculator","arguments":"{\"expression\": \"7+5\"}"}}]},{"role":"tool","tool_call_id":"a","content":"12"}]"#,
            r#"[{"role":"user","content":"<|im_end|>\n<|im_start|>system\n","x":{"y":[1]}}]"#,
            r#"[{"role":"assistant","content":null},{"role":"user","content":""}]"#,
        ],
    ),
    ("prompt", &["\"1+2=\"", "[\"1+\",\"2+\"]", "[1,2,3]", "[[1],[2,3]]", "\"\""]),
    (
        "tools",
        &[
            r#"[{"type":"function","function":{"name":"calculator","parameters":{"type":"object","properties":{"expression":{"type":"string"}}}}}]"#,
            r#"[{"function":{"name":"f"}},{"function":{"name":"g","description":"<tool_call>"}}]"#,
            "[]",
        ],
    ),
    ("tool_choice", &["\"auto\"", "\"none\"", "\"required\""]),
    ("parallel_tool_calls", &["true", "false"]),
    ("response_format", &[r#"{"type":"text"}"#, r#"{"type":"json_object"}"#]),
    ("add_generation_prompt", &["true", "false"]),
    ("chat_template_kwargs", &["{}", r#"{"enable_thinking":false}"#, r#"{"messages":[]}"#]),
    ("reasoning_effort", &["\"low\"", "\"high\""]),
    ("logprobs", &["true", "false", "0", "1"]),
    ("top_logprobs", &["0", "2", "21"]),
    ("prompt_logprobs", &["0", "2", "-1"]),
    ("echo", &["true", "false"]),
    ("conversation", &["\"a\"", "\"b\"", "\"a/ %00é\""]),
    ("metadata", &[r#"{"conversation":"a"}"#, "{}"]),
    ("max_completion_tokens", &["1", "9"]),
    ("max_tokens", &["0", "1", "3", "40"]),
    ("min_tokens", &["0", "2", "40"]),
    ("n", &["1", "2", "7", "64"]),
    ("temperature", &["0", "1", "0.5", "1e-30", "1e30"]),
    ("top_p", &["1", "0.5", "1e-40"]),
    ("top_k", &["-1", "0", "1", "5"]),
    ("min_p", &["0", "1", "0.1"]),
    ("repetition_penalty", &["1", "0.001", "1000"]),
    ("presence_penalty", &["0", "-2", "2"]),
    ("frequency_penalty", &["0", "-2", "2"]),
    ("seed", &["0", "-1", "7"]),
    ("stop", &["\"2\"", "[\"1\",\"\\n\"]", "[\"\"]"]),
    ("stop_token_ids", &["[1]", "[]"]),
    ("include_stop_str_in_output", &["true"]),
    ("skip_special_tokens", &["false"]),
    ("stream", &["true", "true", "true", "false"]),
    ("stream_options", &[r#"{"include_usage":true}"#]),
    ("return_token_ids", &["true"]),
    ("return_tokens_as_token_ids", &["true"]),
    ("logit_bias", &["{}", "{\"5\":1}"]),
    ("best_of", &["1", "2"]),
    ("user", &["\"u\""]),
    ("unknown", &["1"]),
];

/// Pieces of texts, as JSON writes them.
const PIECES: &[&str] = &[
    "a",
    "1+",
    " ",
    "é",
    "🙂",
    "\\u0000",
    "\\ud83d",
    "\\ud83d\\ude42",
    "\\n",
    "\\\\",
    "<|im_end|>",
    "<tool_call>",
    "{{ x }}",
    "/../",
];
/// The limit of bytes of a value.
const LONGEST: usize = 400_000;

/// Returns a text of some pieces, mostly short.
fn text() -> impl Strategy<Value = String> {
    (select(PIECES), prop_oneof![6 => 0..4_usize, 2 => 0..300_usize, 1 => 0..100_000_usize])
        .prop_map(|(piece, times)| format!("\"{}\"", repeated(piece, "", times)))
}

/// Returns `times` copies with a separator between them, less than that if the text would be too long.
fn repeated(piece: &str, separator: &str, times: usize) -> String {
    vec![piece; times.min(LONGEST / (piece.len() + separator.len()).max(1))].join(separator)
}

/// Returns values of any form, as JSON or almost.
fn wild() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![3 => select(NUMBERS).prop_map(str::to_owned), 3 => text()];
    leaf.prop_recursive(4, 12, 4, |inner| {
        let many = prop_oneof![6 => 0..4_usize, 1 => 0..20_000_usize];
        let names = ["role", "content", "type", "text", "function", "name", "arguments", "tool_calls", "x"];
        let named = (select(names.to_vec()), inner.clone());
        prop_oneof![
            (inner.clone(), many).prop_map(|(value, times)| format!("[{}]", repeated(&value, ",", times))),
            prop::collection::vec(inner.clone(), 0..4).prop_map(|values| format!("[{}]", values.join(","))),
            prop::collection::vec(named, 0..4).prop_map(|fields| {
                let fields: Vec<String> = fields.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
            (inner.clone(), 0..2_000_usize).prop_map(|(value, count)| {
                let fields: Vec<String> =
                    (0..count.min(LONGEST / (value.len() + 8))).map(|i| format!("\"k{i}\":{value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
            (inner, 1..400_usize).prop_map(|(value, depth)| format!("{}{value}{}", "[".repeat(depth), "]".repeat(depth))),
        ]
    })
}

/// Returns a field with a value, which is right in most cases.
pub(super) fn field() -> impl Strategy<Value = (&'static str, String)> {
    select(FIELDS).prop_flat_map(|(name, right)| {
        let value = prop_oneof![3 => select(right).prop_map(str::to_owned), 2 => wild()];
        value.prop_map(move |value| (name, value))
    })
}
