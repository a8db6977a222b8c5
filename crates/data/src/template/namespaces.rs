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
