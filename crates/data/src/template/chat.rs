//! Chat templates: the Jinja template that comes with a model turns a conversation into text.

use std::ops::Range;
use std::sync::{Arc, LazyLock, Once};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Value};
use regex::Regex;
use serde_json::Map;

use super::date::TemplateDate;
use super::functions::{raise_exception, strftime_now, tojson};
use super::limits::{FUEL, RenderBudget};
use super::python::follow_python;
use super::source::as_jinja_reads;
use super::variables::{TemplateVariables, mapping, to_template};
use burnish_util::contained::{WorkLimits, contained};

/// Default template: the contents of the messages, each followed by a newline.
pub(crate) const DEFAULT_TEMPLATE: &str = "{% for message in messages %}{{ message['content'] ~ '\\n' }}{% endfor %}";

/// Size limit of a template, in bytes; real ones have about ten thousand.
const MAX_BYTES: usize = 1 << 20;
/// Size limit of a tag without quoted text, in bytes; real ones have a few hundred. minijinja's time is quadratic in this size.
const LONGEST_TAG: usize = 10_000;
/// Bytes of stack per byte of a template. minijinja parses `- - - x` and `1 + 1 + 1` recursively without a limit, with at most
/// one level per byte. Unused stack takes no memory.
const STACK_PER_BYTE: usize = 1 << 10;
const MIN_STACK: usize = 4 << 20;
/// Limits on memory and time for compiling a template.
const COMPILING: (usize, Duration) = (1 << 30, Duration::from_secs(10));

const NAME: &str = "chat_template";
/// Name of the variant that puts [`MARKS`] around the assistant's text.
const MARKED: &str = "chat_template with marks";

/// Characters before and after the assistant's text. Unicode guarantees that they are never assigned.
const MARKS: [char; 2] = ['\u{fdd0}', '\u{fdd1}'];
/// Name of the filter that writes the marks.
const MARK: &str = "marked_as_generated";

/// A compiled template with the special tokens it may use.
pub struct ChatTemplate {
    environment: Arc<Environment<'static>>,
    spent: RenderBudget,
    /// Beginning of an error message, which names the template's file.
    failed: Arc<str>,
    /// Texts of the special tokens, by name.
    special_tokens: Value,
    is_default: bool,
    /// True if the template marks the assistant's text.
    marks: bool,
    warned: Once,
}

/// A rendered conversation, and the byte ranges that the template marks as the assistant's.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkedText {
    pub text: String,
    pub spans: Vec<Range<usize>>,
}

impl ChatTemplate {
    /// Compiles a template. `source` is Jinja for transformers, or `None` for `DEFAULT_TEMPLATE`. `special_tokens` maps
    /// `bos_token`, `eos_token` … to their texts.
    pub fn new(source: Option<&str>, special_tokens: Map<String, serde_json::Value>) -> Result<Self> {
        let mut environment = Environment::new();
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_fuel(Some(FUEL));
        follow_python(&mut environment);
        environment.add_filter("tojson", tojson);
        environment.add_function("raise_exception", raise_exception);
        environment.add_filter(MARK, |text: String| format!("{}{text}{}", MARKS[0], MARKS[1]));
        let source_text = as_jinja_reads(source.unwrap_or(DEFAULT_TEMPLATE));
        let mut environment = compiled(environment, NAME, with_generation_tags(&source_text, ["if true", "endif"]))?;
        let marks = GENERATION.is_match(&source_text);
        if marks {
            let filter = format!("filter {MARK}");
            environment = compiled(environment, MARKED, with_generation_tags(&source_text, [&filter, "endfilter"]))?;
        }
        let template = Self {
            environment: environment.into(),
            marks,
            spent: RenderBudget::default(),
            failed: "the chat template failed".into(),
            special_tokens: mapping(&special_tokens),
            is_default: source.is_none(),
            warned: Once::new(),
        };
        Ok(template.with_date(TemplateDate::today()))
    }

    /// Sets the file that errors name.
    pub fn read_from(self, place: &str) -> Self {
        Self { failed: format!("the chat template in {place} failed").into(), ..self }
    }

    /// Returns the template with another date. The default is the date of compilation.
    pub fn with_date(&self, date: TemplateDate) -> Self {
        let mut environment = Environment::clone(&self.environment);
        environment.add_function("strftime_now", move |format: String| strftime_now(&date, &format));
        self.unused(environment.into(), self.spent.unused())
    }

    /// Returns the template for the texts of many clients: a text that exceeds the limits is refused, and the next one is
    /// rendered. Otherwise a template is given up then, because it would exceed its limits for every row of a file.
    #[must_use]
    pub(crate) fn for_requests(&self) -> Self {
        self.unused(self.environment.clone(), RenderBudget::for_requests())
    }

    fn unused(&self, environment: Arc<Environment<'static>>, spent: RenderBudget) -> Self {
        Self {
            environment,
            spent,
            failed: self.failed.clone(),
            special_tokens: self.special_tokens.clone(),
            is_default: self.is_default,
            marks: self.marks,
            warned: Once::new(),
        }
    }

    /// Returns true if the template's source contains this text.
    pub fn has(&self, text: &str) -> bool {
        self.environment.get_template(NAME).is_ok_and(|template| template.source().contains(text))
    }

    /// Returns true if the template replaces a missing one.
    pub(crate) fn is_default(&self) -> bool {
        self.is_default
    }

    /// Returns true if the template marks the assistant's text (`{% generation %}`).
    pub fn marks(&self) -> bool {
        self.marks
    }

    /// Renders `messages` like [`Self::render`], without a generation prompt, and finds the marked text; `None` if the template
    /// has no marks.
    ///
    /// # Errors
    /// The errors of [`Self::render`]; text that contains the marks' characters.
    pub(crate) fn render_marked(
        &self,
        messages: &serde_json::Value,
        variables: impl Into<TemplateVariables>,
    ) -> Result<Option<MarkedText>> {
        if !self.marks {
            return Ok(None);
        }
        let variables = variables.into();
        let marked = marked(&self.render_as(MARKED, messages, false, variables.clone())?);
        ensure!(
            marked.text == self.render_as(NAME, messages, false, variables)?,
            "the text that the chat template marks with {{% generation %}} cannot be found in the rendered conversation: the template \
             changes marked text, or a message has the character U+FDD0 or U+FDD1; set data.assistant_mask=prefix"
        );
        Ok(Some(marked))
    }

    /// Renders `messages` (a list of `{"role", "content"}`) as text, with additional variables.
    ///
    /// # Errors
    /// If `messages` is not a conversation, or the template fails or exceeds its limits.
    pub fn render(
        &self,
        messages: &serde_json::Value,
        add_generation_prompt: bool,
        variables: impl Into<TemplateVariables>,
    ) -> Result<String> {
        self.render_as(NAME, messages, add_generation_prompt, variables.into())
    }

    fn render_as(
        &self,
        name: &'static str,
        messages: &serde_json::Value,
        add_generation_prompt: bool,
        variables: TemplateVariables,
    ) -> Result<String> {
        let messages = checked(messages)?;
        if self.is_default {
            self.warned.call_once(|| {
                tracing::warn!(
                    "the tokenizer has no chat template: message contents are joined, each followed by a newline; \
                     put a chat_template.jinja next to tokenizer.json to change that"
                );
            });
        }
        // `tools` and `documents` are set to none, not left undefined: some templates distinguish the two.
        let fixed = Value::from_pairs([
            ("messages", messages.iter().map(with_reasoning).collect()),
            ("tools", Value::from(())),
            ("documents", Value::from(())),
            ("add_generation_prompt", add_generation_prompt.into()),
        ]);
        let context = variables.over([fixed, self.special_tokens.clone()]);
        self.spent.render(&self.environment, name, &self.failed, context)
    }
}

fn compiled(mut environment: Environment<'static>, name: &'static str, text: String) -> Result<Environment<'static>> {
    ensure!(text.len() <= MAX_BYTES, "the chat template has {} bytes; at most {MAX_BYTES} are allowed", text.len());
    if let Some(tag) = too_long_tag(&text) {
        let start: String = tag.chars().take(40).collect();
        bail!("the chat template has a tag of more than {LONGEST_TAG} bytes; it begins with {start}");
    }
    let (memory, time) = COMPILING;
    let limits = WorkLimits { memory, time: Some(time), stack: (MIN_STACK + text.len() * STACK_PER_BYTE).next_power_of_two() };
    let compile = move || environment.add_template_owned(name, text).map(|()| environment);
    contained(limits, compile).context("the chat template")?.context("the chat template is not valid Jinja")
}

/// Returns the source from the first tag longer than [`LONGEST_TAG`].
fn too_long_tag(source: &str) -> Option<&str> {
    let bytes = source.as_bytes();
    let is_pair = |at: usize, pairs: [&[u8]; 2]| pairs.contains(&bytes.get(at..at + 2).unwrap_or_default());
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += 1;
        if !is_pair(start, [b"{{", b"{%"]) {
            continue;
        }
        let (mut quote, mut length) = (None, 0);
        at += 1;
        while at < bytes.len() && (quote.is_some() || !is_pair(at, [b"}}", b"%}"])) {
            match bytes[at] {
                b'\\' if quote.is_some() => at += 1,
                byte if quote == Some(byte) => quote = None,
                byte @ (b'\'' | b'"') if quote.is_none() => quote = Some(byte),
                _ => length += usize::from(quote.is_none()),
            }
            at += 1;
            if length > LONGEST_TAG {
                return source.get(start..);
            }
        }
    }
    None
}

fn checked(messages: &serde_json::Value) -> Result<&[serde_json::Value]> {
    let Some(messages) = messages.as_array().filter(|list| !list.is_empty()) else {
        bail!("a conversation must be a list of at least one message");
    };
    for (i, message) in messages.iter().enumerate() {
        let says = message.get("content").or(message.get("tool_calls")).is_some();
        if !message.get("role").is_some_and(|role| role.is_string()) || !says {
            bail!("message {i} of the conversation must have \"role\" (text), and \"content\" or \"tool_calls\"");
        }
    }
    Ok(messages)
}

/// Returns the message with its reasoning under both names that templates read. As in transformers, the message may use any of
/// three names.
fn with_reasoning(message: &serde_json::Value) -> Value {
    let mut given = ["reasoning_content", "thinking", "reasoning"].into_iter().filter_map(|name| message.get(name));
    let (Some(reasoning), Some(fields)) = (given.find(|given| !given.is_null()), message.as_object()) else {
        return to_template(message);
    };
    let mut named = Map::from_iter([("thinking".to_owned(), reasoning.clone())]);
    named.extend(fields.clone());
    named.insert("reasoning_content".to_owned(), reasoning.clone());
    to_template(&serde_json::Value::Object(named))
}

/// The tags that mark the assistant's text in transformers. They print nothing.
static GENERATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}").expect("a constant pattern"));

/// Replaces the tags of [`GENERATION`] with other block tags; keeps nesting and whitespace control.
fn with_generation_tags(source: &str, [open, close]: [&str; 2]) -> String {
    let replace = |tag: &regex::Captures| {
        let word = if tag.get(2).is_some() { close } else { open };
        format!("{{%{} {word} {}%}}", &tag[1], &tag[3])
    };
    GENERATION.replace_all(source, replace).into_owned()
}

/// Removes the marks from a text. A mark inside marked text belongs to the outer one.
fn marked(text: &str) -> MarkedText {
    let (mut out, mut spans, mut starts) = (String::with_capacity(text.len()), Vec::new(), Vec::new());
    for piece in text.split_inclusive(MARKS) {
        out.push_str(piece.trim_end_matches(MARKS));
        if piece.ends_with(MARKS[0]) {
            starts.push(out.len());
        } else if piece.ends_with(MARKS[1])
            && let Some(start) = starts.pop()
            && starts.is_empty()
        {
            spans.push(start..out.len());
        }
    }
    MarkedText { text: out, spans }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use burnish_util::limited_memory::LimitedMemory;
    use serde_json::json;

    use super::*;

    #[global_allocator]
    static ALLOCATOR: LimitedMemory<std::alloc::System> = LimitedMemory(std::alloc::System);

    const MANY: usize = 100_000;

    fn nested(open: &str, middle: &str, close: &str, count: usize) -> String {
        format!("{}{middle}{}", open.repeat(count), close.repeat(count))
    }

    /// A template comes with a model from anywhere. However deep it nests, the result is a text or an error, never a crash.
    #[test]
    fn no_template_ends_the_process() {
        let inside = [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{'a':", "1", "}"),
            ("-", "1", ""),
            ("not ", "1", ""),
            ("1+", "1", ""),
            ("1~", "1", ""),
            ("2**", "1", ""),
            ("1 and ", "1", ""),
            ("1 < ", "1", ""),
            ("1 if 1 else ", "1", ""),
            ("", "messages", ".a"),
            ("", "messages", "[0]"),
            ("", "messages", "()"),
            ("", "1", "|int"),
            ("", "1", " is true"),
            ("range(", "1", ")"),
            ("'%s'%(", "1", ")"),
            ("'%s'%", "1", ""),
        ];
        let around = [
            ("{% if 1 %}", "x", "{% endif %}"),
            ("{% for x in [1] %}", "x", "{% endfor %}"),
            ("{% set x %}", "x", "{% endset %}"),
            ("{% macro x() %}", "x", "{% endmacro %}"),
            ("{% if 1 %}{% elif 1 %}", "x", ""),
            ("{{ '}}' ~ \"%}\" }}", "x", ""),
        ];
        let recursive = "{% macro x() %}{{ x() }}{% endmacro %}{{ x() }}";
        let deep = "{% set n = namespace(x=[]) %}{% for i in range(1000) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x|tojson }}";
        let mut templates = vec![recursive.to_owned(), deep.to_owned()];
        templates.push(format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(40_000)));
        for (open, middle, close) in inside {
            let fits = LONGEST_TAG / (open.len() + close.len()) - 10;
            templates.extend([MANY, fits].map(|count| format!("{{{{ {} }}}}", nested(open, middle, close, count))));
        }
        templates.extend(around.map(|(open, middle, close)| nested(open, middle, close, MANY / 4)));
        let messages = json!([{"role": "user", "content": "x"}]);
        let work = || {
            let made = |template: &String| ChatTemplate::new(Some(template), Map::new());
            let rendered = |template| made(template)?.render(&messages, true, &Map::new());
            templates.iter().map(rendered).filter(Result::is_ok).count()
        };
        let count =
            thread::scope(|scope| thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, work).unwrap().join().unwrap());
        assert!(count >= 5, "only {count} templates were rendered");
        let long = made_error(&format!("{{{{ {} }}}}", "1+".repeat(MANY)));
        assert!(long.contains("a tag of more than 10000 bytes; it begins with {{ 1+1+"), "{long}");
        let quoted = format!("{{{{ '{}' }}}}", "1+".repeat(MANY));
        assert!(ChatTemplate::new(Some(&quoted), Map::new()).is_ok());
    }

    /// Every template is stopped in time, before it takes all memory, and without a crash.
    #[test]
    fn no_template_takes_all_memory_or_time() {
        let grow = |start: &str, step: &str, end: &str| {
            format!(
                "{{% set n = namespace(s={start}) %}}{{% for i in range(60) %}}{{% set n.s = {step} %}}{{% endfor %}}{{{{ {end} }}}}"
            )
        };
        // A namespace may not hold as many values.
        let twice = |i: usize| format!("{{% set v{} = [v{i}, v{i}] %}}", i + 1);
        let memory = "more than 256 MiB";
        let cases = [
            (grow("'x'", "n.s ~ n.s", "n.s|length"), memory),
            (grow("'x'", "n.s + n.s", "n.s|length"), memory),
            (grow("'xxxx'", "n.s|replace('x', 'xxxxxxxxxx')", "1"), memory),
            (grow("'xxxx'", "n.s.replace('x', 'xxxxxxxxxx')", "1"), memory),
            (grow("'xxxx'", "n.s|list|join(n.s)", "1"), memory),
            (grow("[]", "n.s + ['x' * 10**7 ~ i]", "1"), memory),
            ("{{ [[1]]|tojson(indent=10**9) }}".to_owned(), memory),
            ("{{ [[1]]|tojson(indent=10**18) }}".to_owned(), memory),
            ("{{ '%1000000000d'|format(1) }}".to_owned(), memory),
            (format!("{{% set v0 = [1] %}}{}{{{{ v60|tojson }}}}", (0..60).map(twice).collect::<String>()), ""),
            ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}".to_owned(), "instructions"),
        ];
        let messages = json!([{"role": "user", "content": "x"}]);
        let rendered = |(source, expected): &(String, &str)| {
            let template = ChatTemplate::new(Some(source), Map::new()).unwrap().read_from("F");
            let error = || format!("{:#}", template.render(&messages, true, &Map::new()).map(|_| ()).unwrap_err());
            let first = error();
            assert!(
                first.starts_with("the chat template in F failed: it takes") && first.contains(expected),
                "{source}: {first}"
            );
            // The error is kept, so the template is not rendered again for the next row.
            assert_eq!(error(), first);
        };
        thread::scope(|scope| cases.iter().for_each(|case| _ = scope.spawn(|| rendered(case))));
        let long = ChatTemplate::new(Some("{{ raise_exception('x' * 10**7) }}"), Map::new()).unwrap();
        assert!(format!("{:#}", long.render(&messages, true, &Map::new()).unwrap_err()).len() < 3000);
    }

    fn made_error(template: &str) -> String {
        ChatTemplate::new(Some(template), Map::new()).map(|_| ()).unwrap_err().to_string()
    }
}
