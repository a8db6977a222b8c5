//! Variables and arguments: `$NAME`, `${NAME:-default}`, `${NAME[@]}`, `${NAME##*/}`, `$1`, `"$@"`.

use super::budget::{ELEMENT, bytes_of};
use super::machine::ShellMachine;
use super::patterns::{MatchPlace, replaced, without};
use super::pieces::{ExpansionMode, Fields};
use super::state::{ShellState, Status, Variable};
use super::text::{ShellError, is_known, replace_unknowns, unknowns_in};
use brush_parser::word::{
    Parameter, ParameterExpr as Expr, ParameterTestType, ParameterTransformOp as Transform, SpecialParameter as Special,
    SubstringMatchKind as Match,
};

/// The values of a parameter; several for `$@` and `${NAME[@]}`.
struct Values {
    items: Vec<String>,
    is_list: bool,
    is_set: bool,
}

impl ShellMachine<'_> {
    pub(super) fn lookup(&self, name: &str) -> Option<Variable> {
        self.lookup_in(&self.state, name)
    }

    pub(crate) fn lookup_in(&self, state: &ShellState, name: &str) -> Option<Variable> {
        let name = state.referred(name);
        match state.variables.get(name) {
            Some(value) => value.clone(),
            None => match name {
                "PWD" => Some(state.folder.clone()),
                "LINENO" => Some(self.line.to_string()),
                "OSTYPE" => Some("linux-gnu".into()),
                "BASH_SOURCE" => Some(self.env.name.to_string()),
                _ => (self.env.variable)(name).map(|value| value.replace('\0', "")),
            }
            .map(Variable::Text),
        }
    }

    /// Returns the value of `$NAME`, or an unknown.
    pub(super) fn variable(&mut self, name: &str) -> String {
        match self.lookup(name).and_then(|value| value.text()) {
            Some(value) => value,
            None if matches!(name, "RANDOM" | "SECONDS" | "HOSTNAME" | "EPOCHSECONDS") => {
                self.unknown(format!("the value of `${name}` depends on the run"))
            }
            None => self.unset(format!("`${name}` is not set")),
        }
    }

    /// Returns the value of `${NAME[INDEX]}`; an index is a number, or a text in the array of `declare -A`.
    pub(super) fn element(&mut self, name: &str, index: &str) -> Result<String, ShellError> {
        let found = match self.lookup(name) {
            Some(Variable::Map(items)) => {
                let key = self.quoted_text(index.trim_matches(['"', '\'']))?;
                items.get(&key).cloned()
            }
            Some(value) => {
                let items = value.elements();
                let at = self.arithmetic(index)?;
                let Ok(at) = at.parse::<i64>() else { return Ok(at) };
                match &value {
                    Variable::Array(array) if at >= 0 => array.get(&at).cloned(),
                    _ => usize::try_from(if at < 0 { at + items.len() as i64 } else { at })
                        .ok()
                        .and_then(|at| items.get(at).cloned()),
                }
            }
            None => None,
        };
        Ok(found.unwrap_or_else(|| self.unset(format!("`${{{name}[{index}]}}` is not set"))))
    }

    pub(super) fn set(&mut self, name: &str, value: Variable) {
        let name = self.state.referred(name).to_string();
        self.state.variables.insert(name, Some(value));
    }

    pub(crate) fn set_element(&mut self, name: &str, index: &str, text: String) {
        // An exceeded budget ends the script at its next step.
        _ = self.budget.take(index.len() + text.len() + ELEMENT);
        let mut value = self.lookup(name).unwrap_or(Variable::Array(Default::default()));
        match &mut value {
            Variable::Map(items) => drop(items.insert(index.to_string(), text)),
            Variable::Array(items) => drop(items.insert(index.parse().unwrap_or(0), text)),
            Variable::Text(first) => {
                value = Variable::Array([(0, first.clone()), (index.parse().unwrap_or(0), text)].into());
            }
        }
        self.set(name, value);
    }

    /// Replaces unset variables by empty texts, as bash does.
    pub(crate) fn without_unset(&self, text: &str) -> String {
        if unknowns_in(text).is_empty() {
            return text.to_string();
        }
        let keep = |index: usize| {
            let is_unset = self.unknowns.get(index).is_some_and(|unknown| unknown.is_unset);
            if is_unset { String::new() } else { super::text::mark(index) }
        };
        replace_unknowns(text, &keep)
    }

    /// Returns the values of a parameter, after paying for them.
    fn values(&mut self, parameter: &Parameter, indirect: bool) -> Result<Values, ShellError> {
        let values = self.values_of(parameter, indirect)?;
        self.step(bytes_of(&values.items))?;
        Ok(values)
    }

    fn values_of(&mut self, parameter: &Parameter, indirect: bool) -> Result<Values, ShellError> {
        let one = |text: String, is_set| Values { items: vec![text], is_list: false, is_set };
        if indirect {
            let name = self.values(parameter, false)?.items.join(" ");
            if !is_known(&name) {
                return Ok(one(name, true));
            }
            if let Ok(number) = name.parse() {
                return self.values(&Parameter::Positional(number), false);
            }
            let is_set = self.lookup(&name).is_some();
            return Ok(one(self.variable(&name), is_set));
        }
        Ok(match parameter {
            Parameter::Positional(0) => one(self.env.name.to_string(), true),
            Parameter::Positional(number) => match self.state.arguments.get(*number as usize - 1).cloned() {
                Some(value) => one(value, true),
                None => one(self.unset(format!("argument {number} is not given")), false),
            },
            Parameter::Special(special) => match special {
                Special::AllPositionalParameters { concatenate } => {
                    let items = self.state.arguments.clone();
                    let is_set = !items.is_empty();
                    if *concatenate { one(self.joined(&items), is_set) } else { Values { items, is_list: true, is_set } }
                }
                Special::PositionalParameterCount => one(self.state.arguments.len().to_string(), true),
                Special::ShellName => one(self.env.name.to_string(), true),
                Special::LastExitStatus => match self.state.status {
                    Status::Is(true) => one("0".into(), true),
                    Status::Is(false) => one(self.state.code.to_string(), true),
                    Status::Unknown => one(self.unknown("the value of `$?` depends on the run".into()), true),
                },
                Special::CurrentOptionFlags => one("hB".into(), true),
                _ => one(self.unknown("the id of a process depends on the run".into()), true),
            },
            Parameter::Named(name) => {
                let is_set = self.lookup(name).is_some_and(|value| value.text().is_some());
                one(self.variable(name), is_set)
            }
            Parameter::NamedWithIndex { name, index } => {
                let value = self.element(name, index)?;
                let is_set = !unknowns_in(&value).iter().any(|unknown| self.unknowns[*unknown].is_unset);
                one(value, is_set)
            }
            Parameter::NamedWithAllIndices { name, concatenate } => {
                let items = self.lookup(name).map(|value| value.elements()).unwrap_or_default();
                let is_set = !items.is_empty();
                if *concatenate { one(self.joined(&items), is_set) } else { Values { items, is_list: true, is_set } }
            }
        })
    }

    /// Appends the values of a parameter to the words.
    pub(super) fn parameter(&mut self, expr: &Expr, mode: ExpansionMode, fields: &mut Fields) -> Result<(), ShellError> {
        self.step(1)?;
        let is_missing = |machine: &Self, values: &Values, test: &ParameterTestType| {
            let is_empty = || machine.without_unset(&values.items.join(" ")).is_empty();
            !values.is_set || matches!(test, ParameterTestType::UnsetOrNull) && is_empty()
        };
        let values = match expr {
            Expr::Parameter { parameter, indirect } => self.values(parameter, *indirect)?,
            Expr::UseDefaultValues { parameter, indirect, test_type, default_value } => {
                let values = self.values(parameter, *indirect)?;
                if is_missing(self, &values, test_type) {
                    return self.default(default_value.as_deref().unwrap_or_default(), mode, fields);
                }
                values
            }
            Expr::AssignDefaultValues { parameter, indirect, test_type, default_value } => {
                let values = self.values(parameter, *indirect)?;
                if is_missing(self, &values, test_type) {
                    let mut inner = Fields::new(&self.budget);
                    self.default(default_value.as_deref().unwrap_or_default(), ExpansionMode::Whole, &mut inner)?;
                    let value = inner.finish().join(" ");
                    if let Parameter::Named(name) = parameter {
                        self.set(name, Variable::Text(value.clone()));
                    }
                    self.emit(Values { items: vec![value], is_list: false, is_set: true }, mode, fields);
                    return Ok(());
                }
                values
            }
            Expr::IndicateErrorIfNullOrUnset { parameter, indirect, test_type, error_message } => {
                let mut values = self.values(parameter, *indirect)?;
                if is_missing(self, &values, test_type) {
                    let message = self.quoted_text(error_message.as_deref().unwrap_or("it is not set"))?;
                    let message = replace_unknowns(&message, &|_| "…".into());
                    let name = parameter.to_string();
                    values.items = vec![self.unknown(format!("the script asks for `{name}`: {message}"))];
                }
                values
            }
            Expr::UseAlternativeValue { parameter, indirect, test_type, alternative_value } => {
                let values = self.values(parameter, *indirect)?;
                if is_missing(self, &values, test_type) {
                    return Ok(());
                }
                return self.default(alternative_value.as_deref().unwrap_or_default(), mode, fields);
            }
            Expr::ParameterLength { parameter, indirect } => {
                let length = match parameter {
                    Parameter::NamedWithAllIndices { name, .. } => {
                        self.lookup(name).map_or(0, |value| value.elements().len()).to_string()
                    }
                    Parameter::Special(Special::AllPositionalParameters { .. }) => self.state.arguments.len().to_string(),
                    _ => {
                        let text = self.values(parameter, *indirect)?.items.join(" ");
                        let text = self.without_unset(&text);
                        if is_known(&text) { text.chars().count().to_string() } else { text }
                    }
                };
                fields.push(&length);
                return Ok(());
            }
            // This lists no environment variables: `ShellEnv` can only look up a name.
            Expr::VariableNames { prefix, concatenate } => {
                let is_set = |(name, value): (&String, &Option<Variable>)| value.as_ref().map(|_| name.clone());
                let names = self.state.variables.iter().filter(|(name, _)| name.starts_with(prefix.as_str()));
                let mut items: Vec<String> = names.filter_map(is_set).collect();
                items.sort();
                Values { items, is_list: !concatenate, is_set: true }
            }
            Expr::MemberKeys { variable_name, concatenate } => {
                let items = self.lookup(variable_name).map(|value| value.indices()).unwrap_or_default();
                Values { items, is_list: !concatenate, is_set: true }
            }
            Expr::Substring { parameter, indirect, offset, length } => {
                let values = self.values(parameter, *indirect)?;
                let offset = self.arithmetic(&offset.value)?;
                let length = length.as_ref().map(|length| self.arithmetic(&length.value)).transpose()?;
                self.part(values, parameter, &offset, length.as_deref())
            }
            other => self.transformed(other)?,
        };
        self.emit(values, mode, fields);
        Ok(())
    }

    fn emit(&mut self, values: Values, mode: ExpansionMode, fields: &mut Fields) {
        let last = values.items.len().saturating_sub(1);
        let separators = self.separators();
        for (index, item) in values.items.iter().enumerate() {
            match mode {
                ExpansionMode::Split if self.without_unset(item).is_empty() => fields.push_nothing(item),
                ExpansionMode::Split => fields.split(item, &separators),
                ExpansionMode::Quoted => fields.push(item),
                ExpansionMode::Whole => fields.push(&if index < last { format!("{item} ") } else { item.clone() }),
            }
            if values.is_list && mode != ExpansionMode::Whole && index < last {
                fields.end();
            }
        }
    }

    /// Returns the characters of `IFS`, which split unquoted values.
    pub(super) fn separators(&self) -> String {
        self.lookup("IFS").and_then(|value| value.text()).unwrap_or_else(|| " \t\n".into())
    }

    /// Returns `"$*"` or `"${NAME[*]}"`: the values with the first character of `IFS` between them.
    fn joined(&self, items: &[String]) -> String {
        let separators = self.separators();
        items.join(separators.get(..separators.chars().next().map_or(0, char::len_utf8)).unwrap_or_default())
    }

    /// Appends the word after `:-` or `:+`.
    fn default(&mut self, word: &str, mode: ExpansionMode, fields: &mut Fields) -> Result<(), ShellError> {
        let is_quoted = self.is_quoted;
        self.deeper(|machine| match is_quoted {
            true => machine.expand_quoted(word, mode, fields),
            false => machine.expand(word, mode, fields),
        })
    }

    /// Returns `${NAME:OFFSET:LENGTH}`, of a text or of a list.
    fn part(&mut self, values: Values, of: &Parameter, offset: &str, length: Option<&str>) -> Values {
        let (Ok(offset), Ok(length)) = (offset.parse::<i64>(), length.map(str::parse::<i64>).transpose()) else {
            let unknown = self.unknown("the position of a substring is unknown".into());
            return Values { items: vec![unknown], ..values };
        };
        let cut = |count: usize, offset: i64| {
            let start = if offset < 0 { offset.saturating_add(count as i64) } else { offset }.clamp(0, count as i64);
            let end = match length {
                None => count as i64,
                Some(length) if length < 0 => (count as i64).saturating_add(length),
                Some(length) => start.saturating_add(length),
            };
            (start as usize, end.clamp(start, count as i64) as usize)
        };
        if values.is_list {
            let is_arguments = matches!(of, Parameter::Special(_));
            let offset = if is_arguments && offset > 0 { offset - 1 } else { offset };
            let (start, end) = cut(values.items.len(), offset);
            return Values { items: values.items[start..end].to_vec(), ..values };
        }
        let text = self.without_unset(&values.items.join(" "));
        let chars: Vec<char> = text.chars().collect();
        let (start, end) = cut(chars.len(), offset);
        let item = if is_known(&text) { chars[start..end].iter().collect() } else { text };
        Values { items: vec![item], ..values }
    }

    /// Returns the values after a pattern removal, a replacement, or a change of case.
    fn transformed(&mut self, expr: &Expr) -> Result<Values, ShellError> {
        let (parameter, indirect, pattern) = match expr {
            Expr::RemoveSmallestSuffixPattern { parameter, indirect, pattern }
            | Expr::RemoveLargestSuffixPattern { parameter, indirect, pattern }
            | Expr::RemoveSmallestPrefixPattern { parameter, indirect, pattern }
            | Expr::RemoveLargestPrefixPattern { parameter, indirect, pattern }
            | Expr::UppercaseFirstChar { parameter, indirect, pattern }
            | Expr::UppercasePattern { parameter, indirect, pattern }
            | Expr::LowercaseFirstChar { parameter, indirect, pattern }
            | Expr::LowercasePattern { parameter, indirect, pattern } => (parameter, indirect, pattern.clone()),
            Expr::ReplaceSubstring { parameter, indirect, pattern, .. } => (parameter, indirect, Some(pattern.clone())),
            Expr::Transform { parameter, indirect, .. } => (parameter, indirect, None),
            _ => return self.fail("this expansion is not supported"),
        };
        // The elements of `${NAME[*]…}` are changed one by one and then joined.
        let mut apart = parameter.clone();
        let mut is_one_word = false;
        if let Parameter::NamedWithAllIndices { concatenate, .. }
        | Parameter::Special(Special::AllPositionalParameters { concatenate }) = &mut apart
        {
            is_one_word = std::mem::take(concatenate);
        }
        let mut values = self.values(&apart, *indirect)?;
        let pattern = self.pattern_text(pattern.as_deref().unwrap_or_default())?;
        let by = match expr {
            Expr::ReplaceSubstring { replacement: Some(by), .. } => self.expanded(by, ExpansionMode::Whole)?.join(" "),
            _ => String::new(),
        };
        for item in &mut values.items {
            if !is_known(item) {
                continue;
            }
            // A change of case, or of quotes, makes a text at most four times as long.
            self.step(4 * item.len())?;
            let first = |change: fn(&str) -> String| item.chars().next().map_or(String::new(), |c| change(&c.to_string()));
            let rest: String = item.chars().skip(1).collect();
            let changed = match expr {
                Expr::RemoveSmallestSuffixPattern { .. } => without(item, &pattern, true, false),
                Expr::RemoveLargestSuffixPattern { .. } => without(item, &pattern, true, true),
                Expr::RemoveSmallestPrefixPattern { .. } => without(item, &pattern, false, false),
                Expr::RemoveLargestPrefixPattern { .. } => without(item, &pattern, false, true),
                Expr::ReplaceSubstring { match_kind, .. } => {
                    let place = match match_kind {
                        Match::FirstOccurrence => MatchPlace::First,
                        Match::Anywhere => MatchPlace::Everywhere,
                        Match::Prefix => MatchPlace::Start,
                        Match::Suffix => MatchPlace::End,
                    };
                    replaced(item, &pattern, &by, &place, &self.budget)
                }
                Expr::UppercasePattern { .. } | Expr::Transform { op: Transform::ToUpperCase, .. } => Some(item.to_uppercase()),
                Expr::LowercasePattern { .. } | Expr::Transform { op: Transform::ToLowerCase, .. } => Some(item.to_lowercase()),
                Expr::UppercaseFirstChar { .. } | Expr::Transform { op: Transform::CapitalizeInitial, .. } => {
                    Some(first(str::to_uppercase) + &rest)
                }
                Expr::LowercaseFirstChar { .. } => Some(first(str::to_lowercase) + &rest),
                Expr::Transform { op: Transform::Quoted, .. } => Some(format!("'{}'", item.replace('\'', "'\\''"))),
                _ => None,
            };
            *item = changed.unwrap_or_else(|| self.unknown("this expansion is not supported".into()));
        }
        if is_one_word {
            values = Values { items: vec![self.joined(&values.items)], is_list: false, ..values };
        }
        Ok(values)
    }
}
