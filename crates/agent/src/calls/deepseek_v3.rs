//! `deepseek_v3`: calls between special tokens, with arguments in a code fence.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::format::{CallFormat, ParsedTurn, ToolCall};

pub(crate) static DEEPSEEK_V3: CallFormat = CallFormat {
    name: "deepseek_v3",
    aliases: &["deepseek", "deepseek_v31", "deepseek_r1"],
    doc: "DeepSeek-V3 and R1: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME`, then the arguments in a `json` fence on a \
          separate line; V3.1 has the name first and no fence. Arguments are not checked.",
    stop: &[],
    signs: &["<｜tool▁calls▁begin｜>"],
    parse,
};

fn parse(text: &str, _tools: &[Value]) -> ParsedTurn {
    static FENCED: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = "<｜tool▁call▁begin｜>.*<｜tool▁sep｜>(.*)\n```json\n(.*)\n```<｜tool▁call▁end｜>";
        Regex::new(pattern).expect("a constant pattern")
    });
    static BARE: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = "(?s)<｜tool▁call▁begin｜>([^\n<]+?)<｜tool▁sep｜>(\\s*\\{.*?)<｜tool▁call▁end｜>";
        Regex::new(pattern).expect("a constant pattern")
    });
    let Some(first) = text.find("<｜tool▁calls▁begin｜>") else { return ParsedTurn::text(text, 0) };
    let read = |pattern: &Regex| -> Vec<ToolCall> {
        let calls = pattern.captures_iter(&text[first..]).map(|found| found.extract::<2>().1);
        calls.map(|[name, arguments]| ToolCall { id: None, name: name.to_owned(), arguments: arguments.to_owned() }).collect()
    };
    let fenced = read(&FENCED);
    let calls = if fenced.is_empty() { read(&BARE) } else { fenced };
    let unreadable = text.matches("<｜tool▁call▁begin｜>").count().max(1).saturating_sub(calls.len());
    ParsedTurn { content: text[..first].to_owned(), calls, unreadable, ..ParsedTurn::default() }
}
