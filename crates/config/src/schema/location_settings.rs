//! Lists the settings that name a model or data: a path, or a name on the Hub.

use super::distillation::TEACHER;
use super::evaluation::EvalConfig;
use super::generation::GenerationConfig;
use super::location_setting::{LocationKind, LocationSetting};
use super::ppo::PpoConfig;
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

impl PpoConfig {
    /// Returns the settings that name a model or data, if the run reads them.
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
        locations
    }
}

impl GenerationConfig {
    /// Returns the settings that name a model or data.
    pub(super) fn all_locations(&mut self) -> LocationSettings<'_> {
        let settings = &mut self.model;
        let locations = one("model.path", LocationKind::Model { weights: true }, [&mut settings.path]);
        let locations = locations.chain(one("model.tokenizer_path", LocationKind::Tokenizer, &mut settings.tokenizer_path));
        locations.chain(many("data.path", LocationKind::Data, [&mut self.data.path])).collect()
    }
}

impl EvalConfig {
    /// Returns the settings that name a model or data.
    pub(super) fn all_locations(&mut self) -> LocationSettings<'_> {
        let data = &mut self.data;
        let locations = one("data.tokenizer", LocationKind::Tokenizer, &mut data.tokenizer);
        locations.chain(many("data.path", LocationKind::Data, [&mut data.path])).collect()
    }
}
