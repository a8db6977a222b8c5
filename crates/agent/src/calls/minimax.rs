//! `minimax`: `invoke` tags with named parameters.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::blocks::{Blocks, arguments, call};
use super::format::{CallFormat, ParsedTurn};
use burnish_util::python_text::strip;

pub(crate) static MINIMAX: CallFormat = CallFormat {
    name: "minimax",
    aliases: &["minimax_m2", "minimax-m2"],
    doc: "MiniMax-M2: `<minimax:tool_call><invoke name=\"NAME\"><parameter name=\"KEY\">VALUE</parameter></invoke></minimax:tool_call>`. \
          Values that are JSON are read as JSON.",
    stop: &[],
    signs: &["minimax:tool_call"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    static INVOKE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"(?s)<invoke name="([^"]+)">\s*(.*?)</invoke>"#).expect("a constant pattern"));
    static PARAMETER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"(?s)<parameter name="([^"]+)">(.*?)</parameter>"#).expect("a constant pattern"));
    Blocks::find(text, "<minimax:tool_call>", "</minimax:tool_call>").calls(text, |inside| {
        let invoked = INVOKE.captures_iter(inside).map(|found| {
            let [name, body] = found.extract().1;
            let pairs = PARAMETER.captures_iter(body).map(|pair| pair.extract::<2>().1);
            call(strip(name), &arguments(pairs.map(|[key, value]| (key, value))))
        });
        invoked.collect()
    })
}
