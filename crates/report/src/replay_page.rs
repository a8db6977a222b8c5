//! The page of `trainer replay`: one step with its samples token by token, in the style of the report.

use serde_json::Value;

use super::page::{STYLE, fill, html, in_script};

const INDEX: &str = include_str!("page/replay.html");
const SCRIPTS: &[&str] = &[include_str!("page/dom.js"), include_str!("page/replay.js")];

/// Builds the page. `steps`: the rows of `trainer replay --json`.
pub fn replay_page(title: &str, steps: &Value) -> String {
    let json = in_script(&steps.to_string());
    let texts = [("TITLE", &*html(title)), ("STYLE", STYLE), ("SCRIPT", &*SCRIPTS.concat()), ("DATA", &*json)];
    fill(INDEX, &texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_texts_stay_texts_and_nothing_is_requested() {
        let hostile = "</script><script>alert(1)</script>{{STYLE}}";
        let page = replay_page(hostile, &serde_json::json!([{"samples": [{"texts": [{"response": hostile}]}]}]));
        assert!(!page.contains("alert(1)</script>") && page.contains("&lt;/script&gt;"));
        assert!(SCRIPTS.iter().all(|script| !script.contains("</script")));
        for remote in ["src=\"http", "href=\"http", "@import"] {
            assert!(!page.contains(remote), "{remote}");
        }
    }
}
