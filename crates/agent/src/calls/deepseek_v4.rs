//! `deepseek_v4`: `invoke` tags with parameters that declare whether they are text.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::blocks::{Blocks, PADDINGS, call, without};
use super::format::{CallFormat, ParsedTurn};
use burnish_util::python_json::loads;
use burnish_util::python_object::{Fields, Object};

pub(crate) static DEEPSEEK_V4: CallFormat = CallFormat {
    name: "deepseek_v4",
    aliases: &["deepseek-v4", "deepseek_v32", "deepseek-v4-dsml"],
    doc: "DeepSeek-V4: `<｜DSML｜tool_calls><｜DSML｜invoke name=\"NAME\"><｜DSML｜parameter name=\"KEY\" string=\"true\">VALUE…`. The content is \
          the text after the last `</think>`.",
    stop: &[],
    signs: &["｜DSML｜"],
    parse,
};

const OPEN: &str = "<｜DSML｜tool_calls>";

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    static INVOKE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"(?s)<｜DSML｜invoke name="(.*?)">(.*?)</｜DSML｜invoke>"#).expect("a constant pattern"));
    static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r#"(?s)<｜DSML｜parameter name="(.*?)" string="(true|false)">(.*?)</｜DSML｜parameter>"#;
        Regex::new(pattern).expect("a constant pattern")
    });
    let text = without(&without(text, PADDINGS), &["<｜▁pad▁｜>", "<｜end▁of▁sentence｜>"]);
    let Some(first) = text.find(OPEN) else { return ParsedTurn::text(answer(&text), 0) };
    let content = answer(&text[..first]);
    let mut parsed = ParsedTurn::text(content.strip_suffix("\n\n").unwrap_or(content), 0);
    let blocks = Blocks::find(&text, OPEN, "</｜DSML｜tool_calls>");
    parsed.unreadable = usize::from(blocks.unclosed);
    for inside in blocks.inside {
        let invoked = INVOKE.captures_iter(inside).map(|found| {
            let [name, body] = found.extract().1;
            let mut fields = Fields::default();
            for found in PARAMETER.captures_iter(body) {
                let [key, is_text, value] = found.extract().1;
                let json = if is_text == "true" { None } else { loads(value).ok() };
                fields.set_text(key, json.unwrap_or_else(|| Object::Text(value.to_owned())));
            }
            call(name, &fields.dict())
        });
        match invoked.collect::<Option<Vec<_>>>() {
            Some(calls) if !calls.is_empty() => parsed.calls.extend(calls),
            _ => parsed.unreadable += 1,
        }
    }
    parsed
}

/// Returns the text after the thinking.
fn answer(text: &str) -> &str {
    text.rsplit_once("</think>").map_or(text, |(_, answer)| answer)
}
