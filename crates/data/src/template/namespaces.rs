//! Keeps namespaces of templates free of cycles: minijinja would print, compare or sort a namespace that contains itself without
//! an end, and the stack would overflow.
//!
//! A namespace is the only value that changes after its creation, and only by `{% set NAMESPACE.ATTRIBUTE = VALUE %}`. The filter
//! [`GUARD`] is therefore added to each such value. It refuses values with a namespace inside.

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Value};

/// Name of the filter on values that become attributes.
const GUARD: &str = "_without_namespaces";

/// The limit of values inside a value.
const MAX_VALUES: usize = 100_000;

/// The nesting limit of a value.
const DEEPEST: usize = 500;

/// Adds the filter.
pub(crate) fn add(environment: &mut Environment) {
    environment.add_filter(GUARD, |value: Value| {
        let value = listed(value)?;
        check(&value, DEEPEST, &mut { MAX_VALUES })?;
        Ok(value)
    });
}

/// Returns a tag with the filter, if the tag sets an attribute.
pub(crate) fn guarded(tag: &str) -> String {
    let Some((target_at, target)) = target(tag).filter(|(_, target)| target.contains('.')) else { return tag.to_owned() };
    let close = tag.len() - 2 - usize::from(tag[..tag.len() - 2].ends_with(['-', '+']));
    let equals = target_at + target.len();
    match tag[equals..].starts_with('=') {
        true => format!("{}= ({})|{GUARD} {}", &tag[..equals], &tag[equals + 1..close], &tag[close..]),
        // `{% set NAMESPACE.ATTRIBUTE | FILTER %}…{% endset %}`
        false => format!("{} | {GUARD} {}", &tag[..close], &tag[close..]),
    }
}

/// Returns the target of a `set` tag, with its place: the text up to `=`, `|` or the end.
fn target(tag: &str) -> Option<(usize, &str)> {
    let inside = tag.strip_prefix("{%")?.trim_start_matches(['-', '+']).trim_start();
    let rest = inside.strip_prefix("set").filter(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))?;
    let at = tag.len() - rest.len();
    let end = rest.find(['=', '|']).unwrap_or(rest.len().checked_sub(2)?);
    Some((at, &rest[..end]))
}

/// Makes a list of a lazy one, which may read a namespace later.
fn listed(value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Iterable => Ok(value.try_iter()?.take(MAX_VALUES).collect()),
        _ => Ok(value),
    }
}

fn check(value: &Value, depth: usize, left: &mut usize) -> Result<(), Error> {
    let refused = |reason: &str| Err(Error::new(ErrorKind::InvalidOperation, reason.to_owned()));
    let Some(next) = left.checked_sub(1) else { return refused("an attribute of a namespace has too many values") };
    *left = next;
    let Some(object) = value.as_object() else { return Ok(()) };
    if depth == 0 {
        return refused("an attribute of a namespace is nested too deeply");
    }
    if object.type_name().ends_with("::Namespace") {
        return refused("a namespace cannot be an attribute of a namespace, or inside one");
    }
    match value.kind() {
        ValueKind::Seq => value.try_iter()?.try_for_each(|item| check(&item, depth - 1, left)),
        ValueKind::Map => value.try_iter()?.try_for_each(|key| {
            check(&key, depth - 1, left)?;
            check(&value.get_item(&key)?, depth - 1, left)
        }),
        ValueKind::Iterable => refused("an attribute of a namespace has a lazy list inside: add `|list`"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::guarded;
    use crate::template::chat::ChatTemplate;

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
}
