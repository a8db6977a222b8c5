//! `seed`: one function per block, with XML-like parameters.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::blocks::{Blocks, arguments, call};
use super::format::{CallFormat, ParsedTurn};
use burnish_util::python_text::strip;

pub(super) static SEED: CallFormat = CallFormat {
    name: "seed",
    aliases: &["seed_oss", "seed-oss"],
    doc: "Seed-OSS: `<seed:tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></seed:tool_call>`. Only the first function \
          of a block is read; values that are JSON are read as JSON.",
    stop: &[],
    signs: &["seed:tool_call"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    static FUNCTION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?s)<function=([^>\n]+)>\s*(.*?)</function>").expect("a constant pattern"));
    static PARAMETER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?s)<parameter=([^>\n]+)>(.*?)</parameter>").expect("a constant pattern"));
    Blocks::find(text, "<seed:tool_call>", "</seed:tool_call>").calls(text, |inside| {
        let [name, body] = FUNCTION.captures(inside)?.extract().1;
        let pairs = PARAMETER.captures_iter(body).map(|pair| pair.extract::<2>().1);
        Some(vec![call(strip(name), &arguments(pairs.map(|[key, value]| (key, value))))?])
    })
}
