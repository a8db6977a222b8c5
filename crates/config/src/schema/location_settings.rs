//! Lists the settings that name a model or data, or a file of code or tools.

use super::agent::AgentConfig;
use super::distillation::TEACHER;
use super::evaluation::EvalConfig;
use super::generation::GenerationConfig;
use super::location_setting::{LocationKind, LocationSetting};
use super::multi_turn::MultiTurnConfig;
use super::ppo::{LOSS_FILE, PpoConfig};
use super::reward::CustomRewardFunctionConfig;
use super::types::{Location, ModelInit, OneOrMany};

type LocationSettings<'a> = Vec<LocationSetting<'a>>;

pub(super) fn one<'a>(
    key: &str,
    kind: LocationKind,
    location: impl IntoIterator<Item = &'a mut Location>,
) -> impl Iterator<Item = LocationSetting<'a>> {
    location.into_iter().map(move |location| LocationSetting { key: key.to_owned(), kind, location })
}

pub(super) fn many<'a>(
    key: &str,
    kind: LocationKind,
    files: impl IntoIterator<Item = &'a mut OneOrMany<Location>>,
) -> impl Iterator<Item = LocationSetting<'a>> {
    let files = files.into_iter().flat_map(|files| files.0.iter_mut().enumerate());
    files.map(move |(index, location)| LocationSetting { key: format!("{key}.{index}"), kind, location })
}

pub(super) fn model(init: ModelInit) -> LocationKind {
    LocationKind::Model { weights: init == ModelInit::Pretrained }
}

/// Returns the settings that name files of conversations. `group`: the key of the group above `multi_turn` and `agent`.
fn conversation_files<'a>(
    group: &str,
    multi_turn: &'a mut MultiTurnConfig,
    agent: &'a mut AgentConfig,
) -> impl Iterator<Item = LocationSetting<'a>> {
    let files = [
        ("multi_turn.tool_config_path", &mut multi_turn.tool_config_path),
        ("multi_turn.function_tool_path", &mut multi_turn.function_tool_path),
        ("multi_turn.interaction_config_path", &mut multi_turn.interaction_config_path),
        ("agent.agent_loop_config_path", &mut agent.agent_loop_config_path),
        ("agent.functions_path", &mut agent.functions_path),
        ("agent.agent_func_path", &mut agent.agent_func_path),
        ("agent.environment.path", &mut agent.environment.path),
        ("agent.server.path", &mut agent.server.path),
    ];
    files.into_iter().filter_map(move |(key, path)| {
        Some(LocationSetting { key: format!("{group}.{key}"), kind: LocationKind::File, location: path.as_mut()? })
    })
}

/// Returns the setting that names the file of a reward function.
fn reward_file(custom: &mut CustomRewardFunctionConfig) -> impl Iterator<Item = LocationSetting<'_>> {
    one("custom_reward_function.path", LocationKind::File, &mut custom.path)
}

impl PpoConfig {
    /// Returns the settings that name a model, data or a file, if the run reads them.
    pub(super) fn all_locations(&mut self) -> LocationSettings<'_> {
        let (has_critic, has_reference, data) = (self.has_critic(), self.has_reference(), &mut self.data);
        let reference = Some(&mut self.actor_rollout_ref.reference.model).filter(|_| has_reference);
        let (actor, critic, reward) = (&mut self.actor_rollout_ref.model, &mut self.critic.model, &mut self.reward_model);
        let judge = reward.enable.then_some(&mut reward.model);
        let (init, mut locations) = (model(actor.init), vec![]);
        locations.extend(one("actor_rollout_ref.model.path", init, [&mut actor.path]));
        locations.extend(one("actor_rollout_ref.model.lora_adapter_path", LocationKind::Adapter, &mut actor.lora_adapter_path));
        if let Some(reference) = reference {
            let weights = LocationKind::Model { weights: true };
            locations.extend(one("actor_rollout_ref.ref.model.path", weights, &mut reference.path));
        }
        if self.distillation.enabled {
            let teacher = &mut self.distillation.teacher_models.teacher_model.model_path;
            locations.extend(one(TEACHER, LocationKind::Model { weights: true }, teacher));
        }
        locations.extend(one("data.tokenizer", LocationKind::Tokenizer, &mut data.tokenizer));
        if has_critic {
            locations.extend(one("critic.model.path", model(critic.init), [&mut critic.path]));
            locations.extend(one("critic.model.lora_adapter_path", LocationKind::Adapter, &mut critic.lora_adapter_path));
        }
        if let Some(judge) = judge {
            locations.extend(one("reward_model.model.path", model(judge.init), &mut judge.path));
            locations.extend(one("reward_model.model.input_tokenizer", LocationKind::Tokenizer, &mut judge.input_tokenizer));
        }
        locations.extend(many("data.train_files", LocationKind::TrainingData, [&mut data.train_files]));
        locations.extend(many("data.val_files", LocationKind::ValidationData, &mut data.val_files));
        let rollout = &mut self.actor_rollout_ref.rollout;
        locations.extend(conversation_files("actor_rollout_ref.rollout", &mut rollout.multi_turn, &mut rollout.agent));
        locations.extend(reward_file(&mut self.custom_reward_function));
        locations.extend(one(LOSS_FILE, LocationKind::File, &mut self.actor_rollout_ref.actor.policy_loss.path));
        let algorithm = &mut self.algorithm;
        locations.extend(one(
            "algorithm.custom_adv_estimator.path",
            LocationKind::File,
            &mut algorithm.custom_adv_estimator.path,
        ));
        locations.extend(one("algorithm.post_processing.path", LocationKind::File, &mut algorithm.post_processing.path));
        locations
    }
}

impl GenerationConfig {
    /// Returns the settings that name a model, data or a file.
    pub(super) fn all_locations(&mut self) -> LocationSettings<'_> {
        let settings = &mut self.model;
        let locations = one("model.path", LocationKind::Model { weights: true }, [&mut settings.path]);
        let locations = locations.chain(one("model.tokenizer_path", LocationKind::Tokenizer, &mut settings.tokenizer_path));
        let locations = locations.chain(many("data.path", LocationKind::Data, [&mut self.data.path]));
        let rollout = &mut self.rollout;
        locations.chain(conversation_files("rollout", &mut rollout.multi_turn, &mut rollout.agent)).collect()
    }
}

impl EvalConfig {
    /// Returns the settings that name a tokenizer, data or a file.
    pub(super) fn all_locations(&mut self) -> LocationSettings<'_> {
        let data = &mut self.data;
        let locations = one("data.tokenizer", LocationKind::Tokenizer, &mut data.tokenizer);
        let locations = locations.chain(many("data.path", LocationKind::Data, [&mut data.path]));
        locations.chain(reward_file(&mut self.custom_reward_function)).collect()
    }
}
