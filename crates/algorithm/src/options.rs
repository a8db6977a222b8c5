//! The settings in the `reads` of an entry, by the last word of their keys.

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// `null`.
    Unset,
    Bool(bool),
    Number(f64),
    /// A list of two numbers.
    Pair([f64; 2]),
    Text(String),
}

impl From<f64> for OptionValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<[f64; 2]> for OptionValue {
    fn from(pair: [f64; 2]) -> Self {
        Self::Pair(pair)
    }
}

impl From<bool> for OptionValue {
    fn from(on: bool) -> Self {
        Self::Bool(on)
    }
}

impl From<&str> for OptionValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The settings of one entry. Reading a setting that the entry does not declare panics, so that `reads` is complete.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options(Vec<(&'static str, OptionValue)>);

impl Options {
    /// Creates the settings of these keys, whose values `of` returns.
    ///
    /// # Errors
    /// If `of` fails.
    pub fn read<E>(keys: &[&'static str], of: impl Fn(&str) -> Result<OptionValue, E>) -> Result<Self, E> {
        keys.iter().map(|key| Ok((*key, of(key)?))).collect::<Result<_, E>>().map(Self)
    }

    /// Returns the settings with another value of one of them; unchanged if the entry does not read it.
    pub fn with(mut self, name: &str, value: impl Into<OptionValue>) -> Self {
        if let Some((_, setting)) = self.0.iter_mut().find(|(key, _)| is_named(key, name)) {
            *setting = value.into();
        }
        self
    }

    /// Returns the value of a setting.
    ///
    /// # Panics
    /// If the entry does not declare it.
    pub fn get(&self, name: &str) -> &OptionValue {
        let found = self.0.iter().find(|(key, _)| is_named(key, name));
        found.map(|(_, setting)| setting).unwrap_or_else(|| panic!("an entry reads `{name}`, which its `reads` does not name"))
    }

    /// Returns a number.
    ///
    /// # Panics
    /// If the entry does not declare the setting, or it is not a number.
    pub fn number(&self, name: &str) -> f64 {
        self.optional(name).unwrap_or_else(|| panic!("`{name}` is unset"))
    }

    /// Returns a number, or `None` if the setting is null.
    ///
    /// # Panics
    /// If the entry does not declare the setting, or it is neither a number nor null.
    pub fn optional(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            OptionValue::Number(number) => Some(*number),
            OptionValue::Unset => None,
            other => panic!("`{name}` is not a number: {other:?}"),
        }
    }

    /// Returns the value of a switch.
    ///
    /// # Panics
    /// If the entry does not declare the setting, or it is not a bool.
    pub fn is_on(&self, name: &str) -> bool {
        match self.get(name) {
            OptionValue::Bool(on) => *on,
            other => panic!("`{name}` is neither true nor false: {other:?}"),
        }
    }

    /// Returns a list of two numbers.
    ///
    /// # Panics
    /// If the entry does not declare the setting, or it is not such a list.
    pub fn pair(&self, name: &str) -> [f64; 2] {
        match self.get(name) {
            OptionValue::Pair(pair) => *pair,
            other => panic!("`{name}` is not a pair of numbers: {other:?}"),
        }
    }

    /// Returns one of several words, which the configuration has checked.
    ///
    /// # Panics
    /// If the entry does not declare the setting, or it is not text.
    pub fn word(&self, name: &str) -> &str {
        match self.get(name) {
            OptionValue::Text(word) => word,
            other => panic!("`{name}` is not a word: {other:?}"),
        }
    }
}

/// Returns true if `name` is the last word of a key.
fn is_named(key: &str, name: &str) -> bool {
    key.rsplit('.').next() == Some(name)
}

#[cfg(test)]
impl Options {
    /// Returns the values of the built-in YAML files, for tests.
    pub(super) fn built_in(keys: &[&'static str]) -> Self {
        let files = [
            ("algorithm.", include_str!("../../../config/algorithm/default.yaml")),
            ("actor_rollout_ref.actor.", include_str!("../../../config/actor/dp_actor.yaml")),
        ];
        let value = |key: &str| -> Result<OptionValue, String> {
            let (_, text) = files.iter().find(|(section, _)| key.starts_with(section)).ok_or(key)?;
            let of = |line: &str| line.trim().split_once(": ").filter(|(name, _)| is_named(key, name)).map(|(_, v)| v.to_owned());
            let value = text.lines().find_map(of).ok_or_else(|| format!("{key} is not in the YAML"))?;
            Ok(match value.as_str() {
                "null" => OptionValue::Unset,
                "true" | "false" => OptionValue::Bool(value == "true"),
                _ => match value.trim_matches(['[', ']']).split_once(", ").map(|(low, high)| (low.parse(), high.parse())) {
                    Some((Ok(low), Ok(high))) => OptionValue::Pair([low, high]),
                    _ => value.parse().map_or(OptionValue::Text(value), OptionValue::Number),
                },
            })
        };
        Self::read(keys, value).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_what_it_declares() {
        let options = Options::built_in(&["algorithm.gamma", "algorithm.scale_rewards", "algorithm.norm_adv_by_std_in_grpo"]);
        assert_eq!((options.number("gamma"), options.word("scale_rewards")), (1.0, "group"));
        assert!(!options.clone().with("norm_adv_by_std_in_grpo", false).is_on("norm_adv_by_std_in_grpo"));
        assert_eq!(options.clone().with("lam", 0.5), options);
        assert_eq!(Options::built_in(&["actor_rollout_ref.actor.policy_loss.delta"]).optional("delta"), None);
        assert!(std::panic::catch_unwind(|| options.number("lam")).is_err());
    }
}
