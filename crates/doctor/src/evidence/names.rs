//! Names of settings in the libraries whose runs are read, so that advice names what the user can type.

/// The library that made a run, and its family of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLibrary {
    /// burnish's reinforcement learning, and verl.
    Verl,
    /// burnish's stages: SFT, DPO, reward models, distillation.
    Stage,
    /// TRL.
    Trl,
}

/// A setting under its short name in advice.
struct NamedSetting {
    short: &'static str,
    verl: &'static str,
    stage: &'static str,
    trl: &'static str,
}

const fn setting(short: &'static str, verl: &'static str, stage: &'static str, trl: &'static str) -> NamedSetting {
    NamedSetting { short, verl, stage, trl }
}

/// Settings that advice names. An empty name means that the library lacks the setting: advice then shows burnish's.
const SETTINGS: &[NamedSetting] = &[
    setting("lr", "actor_rollout_ref.actor.optim.lr", "optim.lr", "learning_rate"),
    setting("max_response", "data.max_response_length", "data.max_length", "max_completion_length"),
    setting("n", "actor_rollout_ref.rollout.n", "", "num_generations"),
    setting("temperature", "actor_rollout_ref.rollout.temperature", "", "temperature"),
    setting("max_length", "data.max_prompt_length", "data.max_length", "max_length"),
    setting("kl_coef", "actor_rollout_ref.actor.kl_loss_coef", "", "beta"),
    setting("batch", "data.train_batch_size", "", ""),
    setting("mini_batch", "actor_rollout_ref.actor.ppo_mini_batch_size", "", ""),
    setting("epochs", "actor_rollout_ref.actor.ppo_epochs", "", ""),
    setting("loss_mode", "actor_rollout_ref.actor.policy_loss.loss_mode", "", ""),
    setting("lora_rank", "actor_rollout_ref.model.lora_rank", "model.lora_rank", "lora_rank"),
    setting("functions", "reward_model.reward_functions", "", "reward_funcs"),
    setting("weights", "reward_model.reward_weights", "", "reward_weights"),
];

/// Returns the key of a setting; a text without an entry is a key itself.
pub(super) fn key(library: RunLibrary, name: &str) -> &str {
    SETTINGS.iter().find(|known| known.short == name).map_or(name, |known| known.of(library))
}

impl NamedSetting {
    fn of(&self, library: RunLibrary) -> &'static str {
        let name = match library {
            RunLibrary::Verl => self.verl,
            RunLibrary::Stage => self.stage,
            RunLibrary::Trl => self.trl,
        };
        if name.is_empty() { self.verl } else { name }
    }
}

/// Replaces `{short}` by the library's name of that setting.
pub(super) fn fill(library: RunLibrary, text: &str) -> String {
    SETTINGS.iter().fold(text.to_owned(), |text, known| text.replace(&format!("{{{}}}", known.short), known.of(library)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_what_the_user_can_type() {
        let fill = |library| fill(library, "Lower {lr}, with {n} samples.");
        assert_eq!(fill(RunLibrary::Trl), "Lower learning_rate, with num_generations samples.");
        assert_eq!(fill(RunLibrary::Stage), "Lower optim.lr, with actor_rollout_ref.rollout.n samples.");
    }
}
