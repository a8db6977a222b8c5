//! Every setting that names a model takes a run's folder, a checkpoint, or a folder of a model.

use std::fs;
use std::path::Path;

use burnish::checkpoint::Checkpoints;
use burnish::cli::choices;
use burnish::config::schema::{
    DistillConfig, DpoConfig, EvalConfig, GenerationConfig, Location, LocationKind, PpoConfig, RmConfig, Schema, SftConfig,
};
use burnish::config::{Loaded, Request, Value, load};
use burnish::job::hub_names;
use burnish::run::{RunInfo, RunState};

/// Settings of reinforcement learning under which a run reads every model.
const ALL_MODELS: &[&str] = &[
    "algorithm.adv_estimator=gae",
    "actor_rollout_ref.actor.use_kl_loss=true",
    "actor_rollout_ref.ref.model.path=data/arithmetic/model",
    "reward_model.enable=true",
    "reward_model.model.path=data/arithmetic/model",
    "reward_model.model.input_tokenizer=data/arithmetic/model",
    "data.tokenizer=data/arithmetic/model",
    "actor_rollout_ref.model.lora_adapter_path=data/arithmetic/adapter",
    "critic.model.lora_adapter_path=data/arithmetic/adapter",
    "distillation.enabled=true",
    "distillation.teacher_models.teacher_model.model_path=data/arithmetic/model",
];
const TOKENIZER: &str = "model.tokenizer_path=data/arithmetic/model";
const ADAPTER: &str = "model.lora_adapter_path=data/arithmetic/adapter";

/// Saves a model of reinforcement learning, `parts` of it, or a supervised one with the part "".
fn save(run: &Path, steps: &[u64], best: Option<u64>, parts: &[&str], adapter: bool) {
    let mut checkpoints = Checkpoints::new(run, None).unwrap();
    for step in steps {
        let write = |folder: &Path| {
            for part in parts {
                let names: &[&str] = if adapter { &["huggingface", "lora_adapter"] } else { &["huggingface"] };
                for name in names {
                    fs::create_dir_all(folder.join(part).join(name))?;
                    fs::write(folder.join(part).join(name).join("config.json"), "{}")?;
                }
            }
            Ok(())
        };
        checkpoints.save(*step, best.filter(|best| best <= step), &|| (), write).unwrap();
    }
}

fn loaded<T: Schema>(overrides: &[&str]) -> Loaded<T> {
    let overrides = overrides.iter().map(ToString::to_string).collect();
    let config = match T::DEFAULT_NAME.trim_end_matches("_trainer") {
        "ppo" => "arithmetic/first.yaml".to_owned(),
        "generation" => "arithmetic/first_generate.yaml".to_owned(),
        "evaluation" => "evaluation.yaml".to_owned(),
        kind => format!("arithmetic/first_{kind}.yaml"),
    };
    load::<T>(&Request { config: Some(config), overrides, ..Request::default() }, &choices(T::KIND)).unwrap()
}

/// Returns the path that a setting leads to and the recorded value, or the message of the error.
fn found<T: Schema>(loaded: &mut Loaded<T>, key: &str, value: &Path) -> Result<(String, String), String> {
    let of_key = |config: &mut T, location: Option<Location>| {
        let place = config.locations().into_iter().find(|place| place.key == key).unwrap();
        location.into_iter().for_each(|location| *place.location = location);
        place.location.as_path().display().to_string()
    };
    let text = value.display().to_string();
    loaded.tree.set(key, Value::Text(text.clone()));
    of_key(&mut loaded.config, Some(Location::new(&text)));
    hub_names::find(loaded).map_err(|error| error.to_string())?.leave();
    let recorded = loaded.tree.value(key).unwrap().plain_text().unwrap();
    Ok((of_key(&mut loaded.config, None), recorded))
}

/// Walks the settings of a kind of configuration that name a model; returns their number.
fn walk<T: Schema>(root: &Path, overrides: &[&str]) -> usize {
    let at = |name: &str| root.join(name);
    let text = |name: &str| at(name).display().to_string();
    let mut settings = loaded::<T>(overrides);
    let keys: Vec<(String, LocationKind)> =
        settings.config.locations().into_iter().map(|place| (place.key, place.kind)).collect();
    let of_models = keys
        .into_iter()
        .filter(|(_, kind)| matches!(kind, LocationKind::Model { .. } | LocationKind::Tokenizer | LocationKind::Adapter));
    let mut count = 0;
    for (key, kind) in of_models {
        count += 1;
        let before = settings.config.locations().into_iter().find(|place| place.key == key).unwrap().location.to_string();
        let part = if key.starts_with("critic.") { "critic/" } else { "actor/" };
        let adapter = kind == LocationKind::Adapter;
        let own = if adapter { "lora_adapter" } else { "huggingface" };
        let [stage, rl] = if adapter { ["adapted", "adapted-rl"] } else { ["stage", "rl"] };
        let forms = [
            (stage.to_owned(), format!("{stage}/global_step_2/{own}"), format!("{stage}/global_step_2")),
            (format!("{stage}/global_step_1"), format!("{stage}/global_step_1/{own}"), format!("{stage}/global_step_1")),
            // The best checkpoint by validation comes before the last one.
            (rl.to_owned(), format!("{rl}/global_step_1/{part}{own}"), format!("{rl}/global_step_1")),
            (format!("{rl}/global_step_2"), format!("{rl}/global_step_2/{part}{own}"), format!("{rl}/global_step_2")),
            (format!("{rl}/global_step_2/critic"), format!("{rl}/global_step_2/critic/{own}"), format!("{rl}/global_step_2")),
            ("stage/global_step_1/huggingface".into(), "stage/global_step_1/huggingface".into(), String::new()),
            ("missing".into(), "missing".into(), String::new()),
        ];
        for (form, folder, recorded) in forms {
            let recorded = if recorded.is_empty() { &form } else { &recorded };
            assert_eq!(found(&mut settings, &key, &at(&form)), Ok((text(&folder), text(recorded))), "{key}={form}");
        }
        let nothing = found(&mut settings, &key, &at("unsaved")).unwrap_err();
        assert!(nothing.contains("saved no checkpoint") && nothing.contains("save_freq") && nothing.contains(&key), "{nothing}");
        if adapter {
            let whole = found(&mut settings, &key, &at("stage")).unwrap_err();
            assert!(whole.contains("not a LoRA adapter"), "{whole}");
        }
        fs::write(at("torn/global_step_1/huggingface/config.json"), "").unwrap();
        let torn = found(&mut settings, &key, &at("torn")).unwrap_err();
        assert!(torn.contains("is damaged") && torn.contains(&key), "{torn}");
        found(&mut settings, &key, Path::new(&before)).unwrap();
    }
    count
}

#[test]
fn every_setting_of_a_model_takes_a_run_and_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    save(&root.join("stage"), &[1, 2], None, &[""], false);
    save(&root.join("adapted"), &[1, 2], None, &[""], true);
    save(&root.join("rl"), &[1, 2], Some(1), &["actor", "critic"], false);
    save(&root.join("adapted-rl"), &[1, 2], Some(1), &["actor", "critic"], true);
    save(&root.join("torn"), &[1], None, &[""], false);
    let settings = vec![("trainer.save_freq".to_owned(), serde_json::Value::Null, "here".to_owned())];
    fs::create_dir(root.join("unsaved")).unwrap();
    let unsaved = RunInfo { state: RunState::Finished, ..RunInfo::new("ppo", "p", "e") }.with_settings(settings);
    unsaved.write(&root.join("unsaved")).unwrap();
    let count = walk::<PpoConfig>(root, ALL_MODELS)
        + walk::<SftConfig>(root, &[TOKENIZER, ADAPTER])
        + walk::<RmConfig>(root, &[TOKENIZER, ADAPTER])
        + walk::<DpoConfig>(root, &[TOKENIZER, ADAPTER, "ref.model.path=data/arithmetic/model"])
        + walk::<DistillConfig>(root, &[TOKENIZER, ADAPTER, "teacher.path=data/arithmetic/model"])
        + walk::<GenerationConfig>(root, &[TOKENIZER])
        + walk::<EvalConfig>(root, &["data.tokenizer=data/arithmetic/model"]);
    assert!(count >= 18, "{count} settings");
}
