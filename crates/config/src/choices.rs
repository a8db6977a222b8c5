//! The names in the registries, with the needs of each name and the settings that it refuses.

use burnish_registry::{Choice, Need};

/// Keys whose values are names in a registry, with the setting that adds names.
pub(super) const ADDING_NAMES: &[(&str, &str)] = &[("reward_model.reward_functions", "custom_reward_function.name")];

/// Keys whose values are names in a registry, with the setting of a file that brings other names.
pub(super) const OPENED: &[(&str, &str)] = &[
    ("algorithm.adv_estimator", "algorithm.custom_adv_estimator.path"),
    ("actor_rollout_ref.actor.policy_loss.loss_mode", "actor_rollout_ref.actor.policy_loss.path"),
    ("actor_rollout_ref.rollout.agent.default_agent_loop", "actor_rollout_ref.rollout.agent.agent_loop_config_path"),
    ("rollout.agent.default_agent_loop", "rollout.agent.agent_loop_config_path"),
];

/// All names in the registries of one kind of configuration. Without names (the default), no name is checked.
#[derive(Clone, Debug, Default)]
pub struct Choices(Vec<Choice>);

impl FromIterator<Choice> for Choices {
    fn from_iter<I: IntoIterator<Item = Choice>>(choices: I) -> Self {
        Self(choices.into_iter().collect())
    }
}

impl Choices {
    /// Returns all choices, grouped by key.
    pub fn iter(&self) -> impl Iterator<Item = &Choice> {
        self.0.iter()
    }

    /// Returns the choices of a key, without the names that are refused.
    pub(crate) fn for_key(&self, key: &str) -> impl Iterator<Item = &Choice> {
        self.0.iter().filter(move |choice| choice.key == key && choice.absent.is_none())
    }

    /// Returns the reason why a name of another library is not supported, if the reason is known.
    pub(super) fn absent(&self, key: &str, name: &str) -> Option<&'static str> {
        self.0.iter().filter(|choice| choice.key == key && choice.name == name).find_map(|choice| choice.absent)
    }

    /// Returns the allowed names of a key; `None` if no registry has names for it.
    pub fn names(&self, key: &str) -> Option<Vec<&str>> {
        Some(self.for_key(key).map(|choice| choice.name.as_ref()).collect()).filter(|names: &Vec<_>| !names.is_empty())
    }

    /// Returns the choice of a key with this name.
    pub fn find(&self, key: &str, name: &str) -> Option<&Choice> {
        self.for_key(key).find(|choice| choice.name == name)
    }

    /// True if this name, as the value of this key, has this need.
    pub fn needs(&self, key: &str, name: &str, need: Need) -> bool {
        self.find(key, name).is_some_and(|choice| choice.needs.contains(&need))
    }

    /// Returns the keys that hold names, each once.
    pub(super) fn keys(&self) -> Vec<&'static str> {
        let mut keys: Vec<&str> = self.0.iter().map(|choice| choice.key).collect();
        keys.dedup();
        keys
    }
}
