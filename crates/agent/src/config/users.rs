//! Lists of simulated users in the form of verl before 0.8 (`multi_turn.interaction_config_path`).

use serde_json::{Map, Value};

use super::entries::{ConfigFileError, Names, class_name, entries, fields, mapping, text};

/// A simulated user of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct UserConfig {
    /// The name by which a row selects the user (`interaction_kwargs.name`).
    pub name: String,
    /// The dotted name of the class.
    pub class_name: String,
    pub config: Map<String, Value>,
    /// The dotted key of the entry in its file, for messages.
    pub place: String,
}

/// Reads a list of simulated users: `interaction: [{name, class_name, config}, …]`. The default name is the name of the class
/// without `Interaction`, in lower case.
///
/// # Errors
/// The first mistake: an unknown key, a value of the wrong type, or two users with the same name.
pub fn users(file: &Value) -> Result<Vec<UserConfig>, ConfigFileError> {
    let (mut read, mut names) = (Vec::new(), Names::default());
    for (entry, place) in entries(file, "interaction")? {
        let fields = fields(entry, &place, &["name", "class_name", "config"])?;
        let class_name = class_name(fields, &place, "class_name")?;
        let name = match text(fields, &place, "name")? {
            Some(name) => name.to_owned(),
            None => default_name(&class_name),
        };
        names.take(&name, "user", &place)?;
        read.push(UserConfig { name, config: mapping(fields, &place, "config")?, class_name, place });
    }
    Ok(read)
}

/// Returns verl's default name of a simulated user.
fn default_name(class_name: &str) -> String {
    let last = class_name.rsplit('.').next().unwrap_or(class_name);
    last.strip_suffix("Interaction").unwrap_or(last).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn users_have_names() {
        let gsm8k = "verl.interactions.gsm8k_interaction.Gsm8kInteraction";
        let read =
            users(&json!({"interaction": [{"class_name": gsm8k}, {"name": "other", "class_name": "m.U", "config": {"a": 1}}]}));
        assert_eq!(read.unwrap().iter().map(|user| &*user.name).collect::<Vec<_>>(), ["gsm8k", "other"]);
        let twice = json!({"interaction": [{"class_name": gsm8k}, {"name": "gsm8k", "class_name": "m.U"}]});
        let wrong = users(&twice).unwrap_err();
        assert!(wrong.key == "interaction.1" && wrong.message.contains("listed twice"), "{wrong:?}");
    }
}
