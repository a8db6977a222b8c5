//! The page: HTML, style, script and data in one file.

use super::gather::Data;

const INDEX: &str = include_str!("page/index.html");
pub(super) const STYLE: &str = include_str!("page/style.css");
/// Scripts, in the order in which they run; they share one scope.
const SCRIPTS: &[&str] = &[
    include_str!("page/data.js"),
    include_str!("page/dom.js"),
    include_str!("page/state.js"),
    include_str!("page/axes.js"),
    include_str!("page/plot.js"),
    include_str!("page/lines.js"),
    include_str!("page/areas.js"),
    include_str!("page/glance.js"),
    include_str!("page/tokens.js"),
    include_str!("page/turns.js"),
    include_str!("page/samples.js"),
    include_str!("page/config.js"),
    include_str!("page/compare.js"),
    include_str!("page/sections.js"),
    include_str!("page/main.js"),
];

/// Builds the page of some runs. With `watch`, it may ask its server for newer data; otherwise it makes no requests.
pub fn page(data: &Data, watch: bool) -> String {
    let title = html(&data.title);
    let json = in_script(&data.json);
    fill(
        INDEX,
        &[
            ("TITLE", &title),
            ("CONNECT", if watch { "'self'" } else { "'none'" }),
            ("STYLE", STYLE),
            ("SCRIPT", &SCRIPTS.concat()),
            ("DATA", &json),
        ],
    )
}

/// Replaces each `{{NAME}}` by its text; such marks inside the texts stay unchanged.
pub(super) fn fill(template: &str, texts: &[(&str, &str)]) -> String {
    let mut parts = template.split("{{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let known =
            part.split_once("}}").and_then(|(name, rest)| Some((texts.iter().find(|(known, _)| *known == name)?.1, rest)));
        let (text, rest) = known.unwrap_or(("{{", part));
        out.push_str(text);
        out.push_str(rest);
    }
    out
}

/// Returns JSON for a script. A `<` could end the script.
pub(super) fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

pub(super) fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const HOSTILE: &str = "</script><script>alert(1)</script><!--{{STYLE}}{{DATA}}&\"'\u{2028}";

    #[test]
    fn hostile_texts_stay_texts() {
        let json = serde_json::json!({"watch": false, "runs": [{"name": HOSTILE}]}).to_string();
        let page = page(&Data { json: json.clone(), title: HOSTILE.into(), problems: vec![] }, false);
        assert!(!page.contains("alert(1)</script>") && !page.contains("<!--{{"));
        let (_, behind) = page.split_once("id=\"data\">").unwrap();
        let (data, _) = behind.split_once("</script>").unwrap();
        assert_eq!(serde_json::from_str::<Value>(data).unwrap(), serde_json::from_str::<Value>(&json).unwrap());
        let (_, title) = page.split_once("<title>").unwrap();
        assert!(title.starts_with("&lt;/script&gt;&lt;script&gt;"));
    }

    #[test]
    fn everything_is_filled_and_ends_where_it_should() {
        let all = ["TITLE", "CONNECT", "STYLE", "SCRIPT", "DATA"];
        let empty = fill(INDEX, &all.map(|name| (name, "")));
        assert!(!empty.contains("{{") && all.iter().all(|name| INDEX.contains(&format!("{{{{{name}}}}}"))));
        assert!(
            !STYLE.contains("</style") && SCRIPTS.iter().all(|script| !script.contains("</script") && !script.contains("<!--"))
        );
        let page = |watch| page(&Data { json: "{}".into(), title: "t".into(), problems: vec![] }, watch);
        assert!(page(true).contains("connect-src 'self'") && page(false).contains("connect-src 'none'"));
        for remote in ["src=\"http", "href=\"http", "url(", "@import"] {
            assert!(!page(true).contains(remote), "{remote}");
        }
    }

    #[test]
    fn no_name_is_declared_by_two_scripts() {
        let declared = |line: &str| {
            let mut words = line.split([' ', '(', '=', ';']);
            let is_declaration = matches!(words.next(), Some("function" | "const" | "let" | "class"));
            words.next().filter(|name| is_declaration && !name.is_empty()).map(str::to_owned)
        };
        let mut names: Vec<String> = SCRIPTS.iter().flat_map(|script| script.lines()).filter_map(declared).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert!(count > 100 && names.len() == count, "a name is declared twice: the page would stay empty");
    }
}
