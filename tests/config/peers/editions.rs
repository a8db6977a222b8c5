//! Options of every release: no option is lost, each keeps its value, and the release is the nearest.

use super::effects::{context, sample};
use super::*;

#[test]
fn every_option_of_all_releases_together_is_named() {
    for peer in PEERS {
        let options = (peer.options)();
        for trainer in peer.trainers {
            let edition = options.editions(trainer.name).next_back().unwrap();
            let mut command = context(peer, trainer.name, edition);
            let given: Vec<&OptionRow> = options.of(trainer.name).filter(|option| option.name != "config").collect();
            for option in &given {
                let default = option.editions().next_back().and_then(|edition| option.default(edition)).unwrap();
                command.push(format!("--{}", option.name));
                command.extend(words(&sample(option, &default)));
            }
            let recipe = converted(peer, &command, None).unwrap_or_else(|error| panic!("{}: {error}", trainer.name)).recipe;
            let message: String = recipe.lines().skip(3).filter(|line| !line.contains("are of several releases")).collect();
            let is_named =
                |name: &str| message.match_indices(name).any(|(at, _)| !message[at + name.len()..].starts_with(['_', '.']));
            let lost: Vec<&str> = given.iter().map(|option| option.name).filter(|name| !is_named(name)).collect();
            assert!(lost.is_empty(), "{} {}: {}", peer.name, trainer.name, lost.join(", "));
        }
    }
}

/// Options that count only together with others.
const REPLACED: &[&str] = &["label_smoothing"];

#[test]
fn an_option_that_is_a_setting_keeps_its_value_in_every_release() {
    let mut changed = vec![];
    for peer in PEERS {
        for option in &(peer.options)().all {
            let Some(OptionTreatment::Key(key)) = peer.treatment(option.trainer, option.name) else { continue };
            let trainer = peer.trainer(option.trainer).unwrap();
            let key = in_section(key, trainer.kind != Kind::Rl);
            for edition in BTreeSet::from([option.editions().next().unwrap(), option.editions().next_back().unwrap()]) {
                let value = sample(option, &option.default(edition).unwrap());
                let mut command = context(peer, option.trainer, edition);
                command.push(format!("--{}", option.name));
                command.extend(words(&value));
                // The release is not named, so the options decide.
                let one = converted(peer, &command, None).unwrap_or_else(|error| panic!("{}: {error}", command.join(" ")));
                let comment = format!("--{}", option.name);
                let is_kept = |set: &String| set.strip_prefix(&key).is_some_and(|rest| rest.starts_with('='));
                if !one.overrides.iter().any(is_kept) || !one.recipe.contains(&comment) {
                    changed.push(format!("{} {}: --{} {value} is not {key}", peer.name, option.trainer, option.name));
                }
            }
        }
    }
    changed.retain(|line| !REPLACED.iter().any(|name| line.contains(&format!("--{name} "))));
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn the_release_is_the_nearest_one() {
    const RAY: &str = "python3 -m openrlhf.cli.train_ppo_ray --pretrain m --remote_rm_url r.py --prompt_data a/b";
    for (peer, command, release, expected) in [
        (&TRL, "trl grpo --beta 0.1".to_string(), None, &["TRL 1.16.0, the newest release that is known here"][..]),
        (
            &TRL,
            "trl grpo --vllm_device auto".into(),
            None,
            &["TRL 0.17.0, the newest release that has --vllm_device", "temperature: 0.9", "kl_loss_coef: 0.04"],
        ),
        (
            &TRL,
            "accelerate launch my_grpo.py --vllm_device auto --reward_funcs accuracy_reward".into(),
            None,
            &["TRL 0.17.0, the newest release that has --vllm_device", "accuracy_reward"],
        ),
        (&TRL, "trl sft --packing".into(), Some("0.16"), &["TRL 0.16.1, which was asked for"]),
        (&TRL, "trl sft --packing".into(), Some("v0.12.0"), &["TRL 0.12.2,"]),
        (&OPENRLHF, format!("{RAY} --bf16"), Some("0.6.1"), &["OpenRLHF 0.6.1.post1,"]),
        (
            &OPENRLHF,
            format!("{RAY} --n_samples_per_prompt 4 --prompt_max_len 128 --use_kl_loss --num_episodes 5 --rollout_batch_size 64"),
            None,
            &[
                "'n': 4  #",
                "max_prompt_length: 128  #",
                "total_epochs: 5  #",
                "OpenRLHF 0.9.7, the newest release that has --prompt_max_len",
            ],
        ),
        (
            &OPENRLHF,
            format!("{RAY} --prompt_max_len 128 --data.label_key gold --rollout.n_samples_per_prompt 4"),
            None,
            &[
                "are of several releases",
                "max_prompt_length: 128  #",
                "label_key: gold  #",
                "'n': 4  #",
                "--data.label_key (since 0.10.2)",
            ],
        ),
        (&OPENRLHF, format!("{RAY} --vllm_enable_is_correction"), None, &["--vllm_enable_is_correction"]),
    ] {
        let recipe = converted(peer, &words(&command), release).unwrap_or_else(|error| panic!("{command}: {error}")).recipe;
        for text in expected {
            assert!(recipe.contains(text), "{command}: no `{text}` in\n{recipe}");
        }
    }
}

#[test]
fn names_are_read_as_argparse_reads_them() {
    let command = "trl sft --per_device_train_b 3 --learning-rate 1e-3 --no_shuffle --num_t=2 --model_name m --dataset_name a/b";
    let recipe = converted(&TRL, &words(command), None).unwrap().recipe;
    for text in ["train_batch_size: 3  # --per_device_train_batch_size", "lr: 0.001  # --learning_rate", "total_epochs: 2  #"] {
        assert!(recipe.contains(text), "no `{text}` in\n{recipe}");
    }
}

#[test]
fn all_unknown_options_are_named_and_the_recipe_is_written() {
    let text =
        "model_name_or_path: m\ndataset_name: a/b\nlearning_rat: 1\nmy_own: [1, 2]\nchat_template: '{{ x }}'\nenv: {A: b}\n";
    let access = FileAccess { read: &|_| Ok(text.into()), files: &|_| None };
    let (options, stage) = (Some("options.yaml"), Some("sft"));
    let source =
        PeerSource { name: "command", calls: vec![], unknowns: vec![], options, edition: None, stage, processes: None, access };
    let of_file = convert(&TRL, &source).unwrap();
    let of_words = converted(&TRL, &words("trl sft --lerning_rate 1 --my_own 1 2 --chat_tmplate x --packing"), None).unwrap();
    for one in [of_file, of_words] {
        let lines: Vec<String> = one.refused.iter().map(|refused| refused.line()).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("did you mean --learning_rate?")), "{lines:?}");
        assert!(one.recipe.contains("my_own"), "{}", one.recipe);
    }
}

#[test]
fn every_command_of_the_libraries_is_supported_or_has_an_alternative() {
    for peer in PEERS {
        let is_absent = |command: &str| peer.absent.iter().any(|(names, _)| names.split(' ').any(|name| name == command));
        let open: Vec<&str> =
            (peer.options)().commands().filter(|command| peer.trainer(command).is_none() && !is_absent(command)).collect();
        assert!(open.is_empty(), "{}: {}", peer.name, open.join(", "));
    }
}
