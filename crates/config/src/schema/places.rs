//! The settings that name a model or data: a path, or a name on the Hub.

use super::distillation::TEACHER;
use super::evaluation::EvalConfig;
use super::generation::GenerationConfig;
use super::place::{Place, Thing};
use super::ppo::PpoConfig;
use super::types::{Init, Location, OneOrMany};

type Places<'a> = Vec<Place<'a>>;

pub(super) fn one<'a>(
    key: &str,
    thing: Thing,
    location: impl IntoIterator<Item = &'a mut Location>,
) -> impl Iterator<Item = Place<'a>> {
    location.into_iter().map(move |location| Place { key: key.to_owned(), thing, location })
}

pub(super) fn many<'a>(
    key: &str,
    thing: Thing,
    files: impl IntoIterator<Item = &'a mut OneOrMany<Location>>,
) -> impl Iterator<Item = Place<'a>> {
    let files = files.into_iter().flat_map(|files| files.0.iter_mut().enumerate());
    files.map(move |(index, location)| Place { key: format!("{key}.{index}"), thing, location })
}

pub(super) fn model(init: Init) -> Thing {
    Thing::Model { weights: init == Init::Pretrained }
}

impl PpoConfig {
    /// The settings that name a model or data, as far as a run reads them.
    pub(super) fn all_places(&mut self) -> Places<'_> {
        let (has_critic, has_reference, data) = (self.has_critic(), self.has_reference(), &mut self.data);
        let reference = Some(&mut self.actor_rollout_ref.reference.model).filter(|_| has_reference);
        let (actor, critic, reward) = (&mut self.actor_rollout_ref.model, &mut self.critic.model, &mut self.reward_model);
        let judge = reward.enable.then_some(&mut reward.model);
        let (init, mut places) = (model(actor.init), vec![]);
        places.extend(one("actor_rollout_ref.model.path", init, [&mut actor.path]));
        places.extend(one("actor_rollout_ref.model.lora_adapter_path", Thing::Adapter, &mut actor.lora_adapter_path));
        if let Some(reference) = reference {
            let weights = Thing::Model { weights: true };
            places.extend(one("actor_rollout_ref.ref.model.path", weights, &mut reference.path));
        }
        if self.distillation.enabled {
            let teacher = &mut self.distillation.teacher_models.teacher_model.model_path;
            places.extend(one(TEACHER, Thing::Model { weights: true }, teacher));
        }
        places.extend(one("data.tokenizer", Thing::Tokenizer, &mut data.tokenizer));
        if has_critic {
            places.extend(one("critic.model.path", model(critic.init), [&mut critic.path]));
            places.extend(one("critic.model.lora_adapter_path", Thing::Adapter, &mut critic.lora_adapter_path));
        }
        if let Some(judge) = judge {
            places.extend(one("reward_model.model.path", model(judge.init), &mut judge.path));
            places.extend(one("reward_model.model.input_tokenizer", Thing::Tokenizer, &mut judge.input_tokenizer));
        }
        places.extend(many("data.train_files", Thing::TrainingData, [&mut data.train_files]));
        places.extend(many("data.val_files", Thing::ValidationData, [&mut data.val_files]));
        places
    }
}

impl GenerationConfig {
    /// The settings that name a model or data.
    pub(super) fn all_places(&mut self) -> Places<'_> {
        let settings = &mut self.model;
        let places = one("model.path", Thing::Model { weights: true }, [&mut settings.path]);
        let places = places.chain(one("model.tokenizer_path", Thing::Tokenizer, &mut settings.tokenizer_path));
        places.chain(many("data.path", Thing::Data, [&mut self.data.path])).collect()
    }
}

impl EvalConfig {
    /// The settings that name a model or data.
    pub(super) fn all_places(&mut self) -> Places<'_> {
        let data = &mut self.data;
        let places = one("data.tokenizer", Thing::Tokenizer, &mut data.tokenizer);
        places.chain(many("data.path", Thing::Data, [&mut data.path])).collect()
    }
}
