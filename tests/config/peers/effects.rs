//! An option that a row declares as a setting changes the recipe.

use super::*;

/// For each command, words with which as many options as possible have an effect.
const CONTEXTS: &[(&str, &str)] = &[
    (
        "grpo",
        "trl grpo --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --reward_funcs accuracy_reward \
         --per_device_train_batch_size 16 --num_generations 4 --use_peft --eval_strategy steps --use_vllm --beta 0.1 \
         --sync_ref_model --log_completions --max_steps 1000 --eval_steps 20",
    ),
    (
        "rloo",
        "trl rloo --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --reward_funcs accuracy_reward \
         --per_device_train_batch_size 16 --num_generations 4 --rloo_k 4 --use_peft --eval_strategy steps --sync_ref_model \
         --log_completions --normalize_reward --eval_steps 20",
    ),
    (
        "ppo",
        "trl ppo --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps --eval_steps 20",
    ),
    (
        "sft",
        "trl sft --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps --eval_steps 20",
    ),
    (
        "dpo",
        "trl dpo --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps --eval_steps 20",
    ),
    (
        "kto",
        "trl kto --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps --eval_steps 20",
    ),
    (
        "orpo",
        "python orpo.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps \
         --eval_steps 20",
    ),
    (
        "cpo",
        "python cpo.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps \
         --eval_steps 20",
    ),
    (
        "tpo",
        "python tpo.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps \
         --eval_steps 20",
    ),
    (
        "reward",
        "trl reward --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps \
         --eval_steps 20",
    ),
    (
        "gkd",
        "python gkd.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps \
         --eval_steps 20 --teacher_model_name_or_path data/arithmetic/model",
    ),
    (
        "online_dpo",
        "python dpo_online.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps \
         --eval_steps 20 --reward_model_path data/arithmetic/reward_model",
    ),
    (
        "a2po",
        "python a2po.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps \
         --eval_steps 20",
    ),
    (
        "iw_opd",
        "python iw_opd.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps \
         --eval_steps 20 --teacher_model_name_or_path data/arithmetic/model --per_device_train_batch_size 16 --log_completions \
         --distillation_objective jsd --loss_top_k 8",
    ),
    (
        "sdft",
        "python sdft.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps \
         --eval_steps 20 --per_device_train_batch_size 16 --num_generations 4",
    ),
    (
        "sdpo",
        "python sdpo.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps \
         --eval_steps 20 --per_device_train_batch_size 16 --num_generations 4 --teacher_model_kind base \
         --distillation_mode topk_logits --distillation_topk 16 --distillation_weight 0.5",
    ),
    (
        "gold",
        "python gold.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --use_peft --eval_strategy steps \
         --eval_steps 20 --teacher_model_name_or_path data/arithmetic/model --lmbda 0",
    ),
    (
        "train_ppo_ray",
        "python3 -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path data/arithmetic/model --pretrain data/arithmetic/model \
         --reward.model_name_or_path data/arithmetic/reward_model --reward_pretrain data/arithmetic/reward_model \
         --data.prompt_dataset data/arithmetic --prompt_data data/arithmetic --eval.dataset data/arithmetic \
         --eval_dataset data/arithmetic --rollout.n_samples_per_prompt 4 --n_samples_per_prompt 4 --ds.lora.rank 8 --lora_rank 8 \
         --train.dynamic_batch_enable --use_dynamic_batch --eval.steps 10 --eval_steps 10 --algo.dynamic_filtering_enable \
         --dynamic_filtering --algo.advantage.is_correction_enable --enable_vllm_is_correction --reward.overlong_buffer_len 4 \
         --overlong_buffer_len 4 --algo.advantage.is_correction_level token",
    ),
    (
        "train_ppo",
        "deepspeed --module openrlhf.cli.train_ppo --pretrain data/arithmetic/model --reward_pretrain data/arithmetic/reward_model \
         --prompt_data data/arithmetic --lora_rank 8",
    ),
    (
        "train_sft",
        "deepspeed --module openrlhf.cli.train_sft --model.model_name_or_path data/arithmetic/model --pretrain data/arithmetic/model \
         --data.dataset data/arithmetic --dataset data/arithmetic --data.output_key answer --output_key answer --ds.lora.rank 8 \
         --lora_rank 8 --eval.dataset data/arithmetic --eval_dataset data/arithmetic --eval.steps 10 --eval_steps 10",
    ),
    (
        "train_dpo",
        "deepspeed --module openrlhf.cli.train_dpo --model.model_name_or_path data/arithmetic/model --pretrain data/arithmetic/model \
         --data.dataset data/arithmetic --dataset data/arithmetic --ds.lora.rank 8 --lora_rank 8 --eval.dataset data/arithmetic \
         --eval_dataset data/arithmetic --eval.steps 10 --eval_steps 10",
    ),
    (
        "train_kto",
        "deepspeed --module openrlhf.cli.train_kto --model.model_name_or_path data/arithmetic/model --pretrain data/arithmetic/model \
         --data.dataset data/arithmetic --dataset data/arithmetic --ds.lora.rank 8 --lora_rank 8 --eval.dataset data/arithmetic \
         --eval_dataset data/arithmetic --eval.steps 10 --eval_steps 10",
    ),
    (
        "train_rm",
        "deepspeed --module openrlhf.cli.train_rm --model.model_name_or_path data/arithmetic/model --pretrain data/arithmetic/model \
         --data.dataset data/arithmetic --dataset data/arithmetic --ds.lora.rank 8 --lora_rank 8 --eval.dataset data/arithmetic \
         --eval_dataset data/arithmetic --eval.steps 10 --eval_steps 10",
    ),
    (
        "train_prm",
        "deepspeed --module openrlhf.cli.train_prm --model.model_name_or_path data/arithmetic/model --pretrain data/arithmetic/model \
         --data.dataset data/arithmetic --dataset data/arithmetic --ds.lora.rank 8 --lora_rank 8 --eval.dataset data/arithmetic \
         --eval_dataset data/arithmetic --eval.steps 10 --eval_steps 10",
    ),
    (
        "train_kd",
        "deepspeed --module openrlhf.cli.train_kd --model.model_name_or_path data/arithmetic/model --pretrain data/arithmetic/model \
         --data.dataset data/arithmetic --dataset data/arithmetic --ds.lora.rank 8 --lora_rank 8 --eval.dataset data/arithmetic \
         --eval_dataset data/arithmetic --eval.steps 10 --eval_steps 10 --output_key answer --teacher_model data/arithmetic/model",
    ),
];

/// Options whose effect needs other words before them, or whose value is not a number: the option, those words, its value.
const SAMPLES: &[(&str, &str, &str)] = &[
    ("sapo_temperature_pos", "--loss_type sapo", "0.5"),
    ("sapo_temperature_neg", "--loss_type sapo", "0.5"),
    ("vespo_k_pos", "--loss_type vespo", "0.5"),
    ("vespo_k_neg", "--loss_type vespo", "0.5"),
    ("vespo_lambda_pos", "--loss_type vespo", "0.5"),
    ("vespo_lambda_neg", "--loss_type vespo", "0.5"),
    ("loss_type", "", "sapo"),
    ("importance_sampling_level", "", "sequence"),
    ("multi_objective_aggregation", "", "normalize_then_sum"),
    ("scale_rewards", "", "none"),
    ("vllm_importance_sampling_mode", "", "token_truncate"),
    ("chat_template_kwargs", "", "{\"enable_thinking\":false}"),
    ("generation_kwargs", "", "{\"top_k\":7}"),
    ("lr_scheduler_kwargs", "--lr_scheduler_type cosine", "{\"num_cycles\":2}"),
    ("lr_scheduler_type", "", "constant"),
    ("optim", "", "sgd"),
    ("optim_args", "--optim sgd", "momentum=0.9"),
    ("actor.muon.lr", "--actor.optim muon", "0.1"),
    ("actor.muon.momentum", "--actor.optim muon", "0.9"),
    ("critic.muon.lr", "--critic.optim muon", "0.1"),
    ("critic.muon.momentum", "--critic.optim muon", "0.9"),
    ("muon.lr", "--optim muon", "0.1"),
    ("muon.momentum", "--optim muon", "0.9"),
    ("actor.optim", "", "muon"),
    ("critic.optim", "", "muon"),
    ("report_to", "", "wandb"),
    ("eval_strategy", "", "no"),
    ("evaluation_strategy", "--eval_strategy no", "steps"),
    ("save_strategy", "", "no"),
    ("truncation_mode", "", "keep_end"),
    ("dataset_train_split", "", "test"),
    ("dataset_test_split", "", "train"),
    ("dataset_config", "", "part"),
    ("dataset_name", "", "some/set"),
    ("datasets", "", "some/set"),
    ("stop_token", "", "eos"),
    ("kl_estimator", "", "k3"),
    ("reward_funcs", "", "think_format_reward"),
    ("generation_batch_size", "", "32"),
    ("steps_per_generation", "", "2"),
    ("num_generations", "", "8"),
    ("rloo_k", "", "8"),
    ("per_device_train_batch_size", "", "32"),
    ("num_train_epochs", "--max_steps -1", "7"),
    ("max_samples", "", "100"),
    ("data.max_samples", "", "100"),
    ("num_generations_eval", "", "3"),
    ("eval_on_start", "", "true"),
    ("max_steps", "", "300"),
    ("completion_only_loss", "", "false"),
    ("input_template", "", "Q:{}"),
    ("data.input_template", "", "Q:{}"),
    ("train_sampling_strategy", "--train_sampling_strategy sequential", "random"),
    ("packing_strategy", "--packing", "wrapped"),
    ("eval_packing", "--packing --packing_strategy wrapped", "false"),
    ("greater_is_better", "--metric_for_best_model eval_loss", "true"),
    ("use_cpu", "", "true"),
    ("use_vllm", "--distillation_objective iw_opd", "true"),
    ("use_rslora", "", "true"),
    ("no_cuda", "", "true"),
    ("save_only_model", "", "true"),
    ("bf16", "", "true"),
    ("logging_steps", "", "3"),
    // Distillation.
    ("distillation_objective", "", "iw_opd"),
    ("distillation_mode", "", "sampled_token"),
    ("teacher_model_kind", "", "live"),
    ("iw_opd_gamma", "--distillation_objective iw_opd", "0.25"),
    ("iw_opd_epsilon", "--distillation_objective iw_opd", "0.25"),
    ("teacher_tokenizer_name_or_path", "--use_uld_loss", "other"),
    ("uld_token_merge_strategy", "--use_uld_loss", "bayesian"),
    ("use_extended_uld", "--use_uld_loss", "false"),
    ("uld_use_hybrid_loss", "--use_uld_loss", "true"),
    ("uld_hybrid_matched_weight", "--use_uld_loss --uld_use_hybrid_loss", "0.5"),
    ("uld_hybrid_unmatched_weight", "--use_uld_loss --uld_use_hybrid_loss", "0.5"),
    ("uld_crossentropy_weight", "--use_uld_loss", "0.5"),
    ("uld_distillation_weight", "--use_uld_loss", "0.5"),
    ("uld_student_temperature", "--use_uld_loss", "0.5"),
    ("uld_teacher_temperature", "--use_uld_loss", "0.5"),
    ("uld_skip_student_eos", "--use_uld_loss", "false"),
    ("uld_skip_teacher_eos", "--use_uld_loss", "false"),
    // OpenRLHF.
    ("algo.advantage.estimator", "", "group_norm"),
    ("advantage_estimator", "", "rloo"),
    ("actor.policy_loss_type", "", "gspo"),
    ("policy_loss_type", "", "gspo"),
    ("actor.loss_agg_mode", "", "seq-mean-token-mean"),
    ("algo.kl.estimator", "", "k3"),
    ("kl_estimator", "", "k3"),
    ("algo.kl.unbiased_gradient", "--algo.kl.use_loss --algo.kl.estimator k3", ""),
    ("algo.advantage.is_correction_type", "", "icepop"),
    ("vllm_is_correction_type", "", "icepop"),
    ("algo.advantage.is_correction_level", "", "seq"),
    ("algo.advantage.is_correction_mode", "", "clip"),
    ("algo.advantage.is_correction_gating", "", "tv"),
    ("algo.advantage.is_correction_enable", "--algo.advantage.is_correction_type tis", "false"),
    ("actor.lr_scheduler", "", "linear"),
    ("critic.lr_scheduler", "", "linear"),
    ("lr_scheduler", "", "linear"),
    ("reward.remote_url", "", "http://localhost:5000"),
    ("remote_rm_url", "", "http://localhost:5000"),
    ("data.prompt_split", "", "test"),
    ("prompt_split", "", "test"),
    ("data.dataset_split", "", "test"),
    ("dataset_split", "", "test"),
    ("train_split", "", "test"),
    ("eval.split", "", "other"),
    ("eval_split", "", "other"),
    ("data.tokenizer_chat_template", "--data.apply_chat_template", "other"),
    ("tokenizer_chat_template", "--apply_chat_template", "other"),
    ("ds.param_dtype", "", "fp16"),
    ("param_dtype", "", "fp16"),
    ("train.batch_size", "", "64"),
    ("train_batch_size", "", "64"),
    ("train.max_tokens_per_gpu", "", "99999"),
    ("train_max_tokens_per_gpu", "", "99999"),
    ("rollout.max_tokens_per_gpu", "", "99999"),
    ("rollout_max_tokens_per_gpu", "", "99999"),
    ("logger.wandb.key", "", "x"),
    ("bnb_4bit_quant_type", "--load_in_4bit true", "fp4"),
    ("use_bnb_nested_quant", "--load_in_4bit true", "true"),
];

/// Options that only act in their first edition, or that replace another option of every context, so that no call shows an
/// effect.
const OVERSHADOWED: &[(&str, &str)] = &[
    ("per_gpu_train_batch_size", "--per_device_train_batch_size"),
    ("evaluation_strategy", "--eval_strategy"),
    ("activation_checkpointing", "--gradient_checkpointing"),
];

/// Returns the result of a conversion, without the comments that name an option.
fn decided(peer: &'static Peer, words: &[String], edition: &str) -> String {
    match converted(peer, words, Some(edition)) {
        Ok(one) => format!("{:#?} {:#?} {:#?} {:#?}", one.overrides, one.refused, one.notes, one.missing),
        Err(error) => panic!("{}: {error}", words.join(" ")),
    }
}

pub(super) fn sample(option: &OptionRow, default: &Value) -> String {
    let number = |value: &Value| match value {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        _ => 0.0,
    };
    match option.syntax {
        OptionSyntax::Flag => if *default == Value::Bool(true) { "false" } else { "true" }.into(),
        OptionSyntax::Int => format!("{}", number(default).max(1.0) as i64 * 2),
        OptionSyntax::Float => format!("{}", if number(default) == 0.25 { 0.5 } else { 0.25 }),
        OptionSyntax::List => "0.25 0.75".into(),
        OptionSyntax::Tree => "{\"a\":1}".into(),
        OptionSyntax::Text => "other".into(),
    }
}

/// Keeps the options of a context that an edition has.
pub(super) fn context(peer: &'static Peer, trainer: &str, edition: usize) -> Vec<String> {
    let (_, text) = CONTEXTS.iter().find(|(name, _)| *name == trainer).unwrap();
    let all = words(text);
    let start = all.iter().position(|word| word.starts_with("--") && word != "--module").unwrap();
    [all[..start].to_vec(), known(peer, trainer, edition, &all[start..])].concat()
}

/// Keeps the options that an edition of a command has.
fn known(peer: &'static Peer, trainer: &str, edition: usize, all: &[String]) -> Vec<String> {
    let (mut kept, mut index) = (vec![], 0);
    while index < all.len() {
        let values = all[index + 1..].iter().take_while(|word| !word.starts_with("--")).count();
        let name = all[index].trim_start_matches("--");
        let has = (peer.options)().find(trainer, name).is_some_and(|option| option.has(edition));
        kept.extend(all[index..=index + values].iter().filter(|_| has).cloned());
        index += values + 1;
    }
    kept
}

#[test]
fn every_option_that_is_a_setting_has_an_effect() {
    let mut idle = vec![];
    for peer in PEERS {
        let options = (peer.options)();
        for option in &options.all {
            let fate = peer.treatment(option.trainer, option.name);
            if !matches!(fate, Some(OptionTreatment::Key(_) | OptionTreatment::Read(_)))
                || OVERSHADOWED.iter().any(|(name, _)| *name == option.name)
            {
                continue;
            }
            let edition = option.editions().next_back().unwrap();
            let name = options.release(edition);
            let found = SAMPLES.iter().find(|(known, ..)| *known == option.name);
            let default = option.default(edition).unwrap();
            let (before, value) = found
                .map_or((String::new(), sample(option, &default)), |(_, before, value)| (before.to_string(), value.to_string()));
            let is_default = default == Value::Text(value.clone());
            let value = if option.name == "truncation_mode" && is_default { "keep_start".into() } else { value };
            let mut base = context(peer, option.trainer, edition);
            base.extend(known(peer, option.trainer, edition, &words(&before)));
            let mut changed = base.clone();
            let is_on = option.syntax == OptionSyntax::Flag && base.contains(&format!("--{}", option.name));
            let value = if is_on { "false".into() } else { value };
            // The last of two counts.
            changed.push(format!("--{}", option.name));
            changed.extend(words(&value));
            if decided(peer, &base, name) == decided(peer, &changed, name) {
                idle.push(format!("{} {name} {}: --{} {value}", peer.name, option.trainer, option.name));
            }
        }
    }
    assert!(idle.is_empty(), "these change nothing:\n{}", idle.join("\n"));
}
