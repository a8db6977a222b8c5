//! Tests of namespaces in chat templates.

use serde_json::{Map, json};

use super::chat::ChatTemplate;
use super::namespaces::guarded;

/// Each of these ended the process: the stack overflowed.
#[test]
fn a_namespace_in_itself_is_refused() {
    for template in [
        "{% set ns.ns = ns %}{{ ns }}",
        "{%- set ns.ns = [1, ns] -%}{{ [ns, ns]|sort }}",
        "{% set ns.x = {'a': [ns]} %}{{ ns == ns.x.a[0] }}",
        "{% set m = namespace(n=ns) %}{% set ns.m = m %}{{ m }}",
        "{% set m = namespace() %}{% set ns.m, m.n = m, ns %}{{ ns }}",
        "{% set ns.x = [ns]|reverse %}{{ ns }}",
        "{% set ns.x | default(ns, true) %}{% endset %}{{ ns }}",
        "{% for x in [ns, ns] %}{% set ns.l = loop %}{{ ns }}{% endfor %}",
        "{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
    ] {
        let template = ChatTemplate::new(Some(&format!("{{% set ns = namespace() %}}{template}")), Map::new()).unwrap();
        let messages = json!([{"role": "user", "content": "a"}]);
        let error = format!("{:#}", template.render(&messages, true, &Map::new()).unwrap_err());
        assert!(error.contains("namespace"), "{error}");
    }
}

#[test]
fn other_attributes_are_set() {
    let source = "{% set ns = namespace(a=[], n=0, last=none) %}{% for m in messages %}{% set ns.a = ns.a + [m] %}\
                  {%- set ns.n = ns.n + 1 %}{% set ns.last = messages|selectattr('role', 'equalto', 'user') %}\
                  {% set ns.x, ns.y = 'x', m.role if m.role else 'none' %}{% set ns.z %}<{{ ns.y }}>{% endset %}\
                  {% endfor %}{{ ns.a|length }} {{ ns.n }} {{ (ns.last|list)[0].content }} {{ ns.x }}{{ ns.y }}{{ ns.z }}";
    let template = ChatTemplate::new(Some(source), Map::new()).unwrap();
    let text = template.render(&json!([{"role": "user", "content": "a"}]), true, &Map::new()).unwrap();
    assert_eq!(text, "1 1 a xuser<user>");
}

#[test]
fn attributes_are_guarded() {
    for (tag, expected) in [
        ("{% set x = ns %}", "{% set x = ns %}"),
        ("{{ set.x }}", "{{ set.x }}"),
        ("{% settle.x = 1 %}", "{% settle.x = 1 %}"),
        ("{%- set ns.x = a, b -%}", "{%- set ns.x = ( a, b )|_without_namespaces -%}"),
        ("{%set(ns.x, y)=a if b else c%}", "{%set(ns.x, y)= (a if b else c)|_without_namespaces %}"),
        ("{% set ns.x %}", "{% set ns.x  | _without_namespaces %}"),
        ("{% set ns.x | default(ns, true) %}", "{% set ns.x | default(ns, true)  | _without_namespaces %}"),
    ] {
        assert_eq!(guarded(tag), expected, "{tag}");
    }
}
