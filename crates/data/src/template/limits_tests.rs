//! Tests of the limits of chat templates.

use serde_json::{Map, json};

use super::chat::ChatTemplate;
use super::variables::TemplateVariables;

/// A server renders the texts of many clients; a text of a file that takes too long speaks against the template.
#[test]
fn a_text_that_takes_too_long_ends_the_template_of_a_file_alone() {
    let source = "{% for i in messages[0].content %}{% for k in messages[0].content %}{{ k }}{% endfor %}{% endfor %}";
    let template = ChatTemplate::new(Some(source), Map::new()).unwrap();
    let render = |template: &ChatTemplate, count: usize| {
        let messages = json!([{"role": "user", "content": "x".repeat(count)}]);
        template.render(&messages, false, TemplateVariables::default()).map_err(|error| format!("{error:#}"))
    };
    let served = template.for_requests();
    for _ in 0..20 {
        assert!(render(&served, 2_000).unwrap_err().contains("instructions for one text"));
        assert_eq!(render(&served, 3).unwrap(), "x".repeat(9));
    }
    assert!(render(&template, 2_000).is_err() && render(&template, 3).is_err());
}
