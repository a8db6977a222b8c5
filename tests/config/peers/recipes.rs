//! Whole conversions, with the exact recipe.

use super::*;
use burnish::cli::choices;
use burnish::config::Request;
use burnish::config::kinds::KINDS;
use std::path::PathBuf;

/// The file under tests/data/peers/, the library, and the command.
const CASES: &[(&str, &Peer, &str)] = &[
    (
        "trl-grpo",
        &TRL,
        "accelerate launch --num_processes 2 trl/scripts/grpo.py --model-name-or-path data/arithmetic/model \
         --dataset_name data/arithmetic --reward_funcs accuracy_reward my.rewards.short --num_generations 8 \
         --per_device_train_batch_size 8 --gradient_accumulation_steps=2 --steps_per_generation 4 --num_iterations 2 --beta 0.04 \
         --epsilon_high 0.28 --loss_type dr_grpo --max_completion_length 8 --warmup_steps 40 --max_steps 800 --eval_strategy steps \
         --eval_steps 80 --save_steps 400 --use_vllm --use_peft --lora_target_modules all-linear --report_to wandb --bf16 --push_to_hub",
    ),
    (
        "trl-rloo-original",
        &TRL,
        "accelerate launch --config_file examples/accelerate_configs/deepspeed_zero2.yaml examples/scripts/rloo/rloo_tldr.py \
         --dataset_name data/arithmetic --dataset_test_split test --num_mini_batches 2 --learning_rate 3e-6 \
         --per_device_train_batch_size 4 --gradient_accumulation_steps 2 --total_episodes 1000000 \
         --model_name_or_path data/arithmetic/model --sft_model_path data/arithmetic/model \
         --reward_model_path data/arithmetic/reward_model --local_rollout_forward_batch_size 16 --missing_eos_penalty 1.0 \
         --stop_token eos --kl_coef 0.03 --rloo_k 4 --response_length 8",
    ),
    (
        "trl-ppo",
        &TRL,
        "python -i examples/scripts/ppo/ppo.py --dataset_name data/arithmetic --learning_rate 3e-6 --num_ppo_epochs 1 \
         --num_mini_batches 1 --per_device_train_batch_size 64 --gradient_accumulation_steps 1 --total_episodes 10000 \
         --model_name_or_path data/arithmetic/model --sft_model_path data/arithmetic/model \
         --reward_model_path data/arithmetic/reward_model --missing_eos_penalty 1.0 --response_length 8",
    ),
    (
        "trl-sft",
        &TRL,
        "trl sft --model_name_or_path data/arithmetic/model --dataset_name openbmb/UltraChat --learning_rate 2.0e-5 --packing \
         --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --eval_strategy steps --eval_steps 100 \
         --num_train_epochs 1.5 --output_dir out/Qwen2-0.5B-SFT --assistant_only_loss --loss_type dft --neftune_noise_alpha 5 \
         --weight_decay 0.01 --metric_for_best_model eval_mean_token_accuracy --load_best_model_at_end",
    ),
    (
        "trl-sft-text",
        &TRL,
        "trl sft --model_name_or_path data/arithmetic/model --dataset_name stanfordnlp/imdb --dataset_text_field text --packing \
         --packing_strategy wrapped --eval_packing false --eval_strategy epoch --max_length 2048 --label_smoothing_factor 0.1 \
         --padding_free --metric_for_best_model loss",
    ),
    (
        "trl-sft-answers",
        &TRL,
        "trl sft --model_name_or_path data/arithmetic/model --dataset_name trl-lib/tldr --completion_only_loss true --assistant_only_loss \
         --truncation_mode keep_end",
    ),
    (
        "trl-sft-0.11",
        &TRL,
        "python sft.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --max_seq_length 512 --packing \
         --torch_dtype bfloat16",
    ),
    (
        "trl-dpo",
        &TRL,
        "accelerate launch --num_processes 4 trl/scripts/dpo.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic \
         --loss_type sigmoid bco_pair sft --loss_weights 0.8 0.2 1.0 --beta 0.05 --max_length 512 --per_device_train_batch_size 8 \
         --gradient_accumulation_steps 2 --learning_rate 5e-7 --eval_strategy steps --eval_steps 50 --precompute_ref_log_probs \
         --use_peft --lora_target_modules all-linear",
    ),
    (
        "trl-kto",
        &TRL,
        "trl kto --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --desirable_weight 1.2 --output_dir out/kto \
         --sync_ref_model",
    ),
    (
        "trl-cpo",
        &TRL,
        "python examples/scripts/cpo.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --loss_type simpo \
         --cpo_alpha 0 --beta 2.0 --max_completion_length 128",
    ),
    (
        "trl-tpo",
        &TRL,
        "accelerate launch examples/scripts/tpo.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic \
         --loss_type tpo-l --beta 2.0 --tpo_l_gamma 0.4 --tpo_alpha 0.5 --output_dir out/tpo",
    ),
    (
        "trl-reward",
        &TRL,
        "trl reward --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --center_rewards_coefficient 0.01 \
         --num_train_epochs 1 --output_dir out/reward",
    ),
    (
        "trl-gkd",
        &TRL,
        "python examples/scripts/gkd.py --model_name_or_path data/arithmetic/model --teacher_model_name_or_path data/arithmetic/model \
         --dataset_name data/arithmetic --lmbda 0 --beta 0.1",
    ),
    (
        "trl-online-dpo",
        &TRL,
        "python examples/scripts/dpo_online.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic \
         --reward_model_path data/arithmetic/reward_model --loss_type ipo --beta 0.2 --missing_eos_penalty 1.0 --max_new_tokens 8 \
         --per_device_train_batch_size 16 --gradient_accumulation_steps 2",
    ),
    (
        "trl-a2po",
        &TRL,
        "accelerate launch --num_processes 2 a2po.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic \
         --num_value_samples 4 --beta1 0.25 --beta2 0.01 --temperature 0.9 --max_completion_length 8 \
         --gradient_accumulation_steps 8",
    ),
    (
        "trl-iw-opd",
        &TRL,
        "accelerate launch --num_processes 2 examples/scripts/iw_opd.py --model_name_or_path data/arithmetic/model \
         --teacher_model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --max_length 64 \
         --max_completion_length 8 --num_generations 2 --generation_batch_size 8 --per_device_train_batch_size 4 \
         --gradient_accumulation_steps 4 --iw_opd_gamma 0.25 --temperature 0.9",
    ),
    (
        "trl-iw-opd-jsd",
        &TRL,
        "python iw_opd.py --model_name_or_path data/arithmetic/model --teacher_model_name_or_path data/arithmetic/model \
         --dataset_name data/arithmetic --distillation_objective jsd --beta 0.5 --loss_top_k 16 --loss_add_tail false",
    ),
    (
        "trl-gold",
        &TRL,
        "python gold.py --model_name_or_path data/arithmetic/model --teacher_model_name_or_path data/arithmetic/model \
         --dataset_name data/arithmetic --use_uld_loss --lmbda 0 --uld_use_hybrid_loss --uld_crossentropy_weight 0.5 \
         --uld_teacher_temperature 2.0 --num_generations 2 --max_length 64",
    ),
    (
        "trl-gold-jsd",
        &TRL,
        "python gold.py --model_name_or_path data/arithmetic/model --teacher_model_name_or_path data/arithmetic/model \
         --dataset_name data/arithmetic --beta 0.1",
    ),
    (
        "trl-sdft",
        &TRL,
        "python sdft.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --teacher_model_kind ema \
         --teacher_update_rate 0.01 --teacher_sync_steps 3 --num_loss_tokens_to_skip 2 --per_device_train_batch_size 8 \
         --gradient_accumulation_steps 2 --steps_per_generation 4 --max_prompt_length 16 --max_completion_length 8",
    ),
    (
        "trl-sdpo",
        &TRL,
        "accelerate launch --num_processes 2 sdpo.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic \
         --include_environment_feedback --success_reward_threshold 0.5 --max_prompt_length 16 --max_completion_length 8",
    ),
    (
        "trl-sdpo-rewards",
        &TRL,
        "python sdpo.py --model_name_or_path data/arithmetic/model --dataset_name data/arithmetic --distillation_weight 0.2 \
         --distillation_mode topk_logits --distillation_topk 20 --distillation_alpha 0.5 --loss_type dr_grpo --epsilon_high 0.28",
    ),
    (
        "openrlhf-dpo",
        &OPENRLHF,
        "deepspeed --module openrlhf.cli.train_dpo --model.model_name_or_path data/arithmetic/model --data.dataset data/arithmetic \
         --data.chosen_key chosen --data.rejected_key rejected --data.prompt_key prompt --model.beta 0.2 --model.label_smoothing 0.1 \
         --model.nll_loss_coef 0.05 --train.batch_size 256 --train.micro_batch_size 1 --adam.lr 5e-7 --ds.packing_samples \
         --data.apply_chat_template",
    ),
    (
        "openrlhf-rm-0.5",
        &OPENRLHF,
        "deepspeed --module openrlhf.cli.train_rm --pretrain data/arithmetic/model --dataset data/arithmetic --loss logexp --margin_loss \
         --save_path ./checkpoint/rm --train_batch_size 256 --micro_train_batch_size 1 --max_epochs 1 --max_len 8192 --learning_rate 9e-6 \
         --bf16 --flash_attn",
    ),
    (
        "openrlhf-kd",
        &OPENRLHF,
        "deepspeed --module openrlhf.cli.train_kd --pretrain data/arithmetic/model --teacher_model data/arithmetic/model \
         --dataset data/arithmetic --input_key question --output_key response --kd_coef 0.6 --teacher_offload",
    ),
    (
        "openrlhf-ppo-0.5",
        &OPENRLHF,
        "ray job submit --address=http://127.0.0.1:8265 -- python3 -m openrlhf.cli.train_ppo_ray --ref_num_nodes 1 \
         --actor_num_gpus_per_node 2 --vllm_num_engines 2 --pretrain data/arithmetic/model \
         --remote_rm_url http://localhost:5000/get_reward --save_path /out/final --micro_train_batch_size 8 --train_batch_size 128 \
         --micro_rollout_batch_size 16 --rollout_batch_size 1024 --n_samples_per_prompt 1 --max_samples 100000 --max_epochs 1 \
         --prompt_max_len 16 --generate_max_len 8 --zero_stage 3 --bf16 --actor_learning_rate 5e-7 --critic_learning_rate 9e-6 \
         --init_kl_coef 0.01 --prompt_data data/arithmetic --input_key prompt --apply_chat_template --normalize_reward \
         --adam_offload --flash_attn --gradient_checkpointing --freezing_actor_steps 4",
    ),
    (
        "openrlhf-today",
        &OPENRLHF,
        "python3 -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path data/arithmetic/model \
         --reward.remote_url examples/python/math_reward_func.py --data.prompt_dataset data/arithmetic --data.input_key prompt \
         --data.label_key label --rollout.batch_size 512 --rollout.n_samples_per_prompt 16 --train.batch_size 1024 \
         --train.num_episodes 100 --data.max_len 9216 --rollout.max_new_tokens 8192 --train.dynamic_batch_enable \
         --train.max_tokens_per_gpu 32768 --algo.advantage.estimator reinforce_baseline --algo.kl.init_coef 1e-4 \
         --algo.kl.use_loss --algo.kl.estimator k2 --actor.eps_clip_low_high 0.2 0.27 --algo.dynamic_filtering_enable \
         --algo.dynamic_filtering_range 0 1 --algo.advantage.is_correction_enable --algo.advantage.is_correction_type icepop \
         --eval.dataset data/arithmetic --eval.split test --eval.steps 5 --ckpt.path /out/ckpt --ckpt.save_steps 5 \
         --reward.stop_properly_penalty_coef 0.0 --vllm.num_engines 8 --ds.param_dtype bf16 --actor.adam.lr 1e-6",
    ),
    (
        "openrlhf-sft",
        &OPENRLHF,
        "deepspeed --module openrlhf.cli.train_sft --data.max_len 2048 --data.dataset data/arithmetic --data.input_key question \
         --data.output_key response --train.batch_size 128 --train.micro_batch_size 4 --model.model_name_or_path data/arithmetic/model \
         --ckpt.path ./checkpoint/sft-lora --ckpt.save_steps -1 --train.max_epochs 1 --ds.param_dtype bf16 --adam.lr 5e-6 \
         --ds.lora.rank 64 --ds.lora.alpha 64 --ds.packing_samples --model.aux_loss_coef 0.001",
    ),
    (
        "openrlhf-sft-multiturn",
        &OPENRLHF,
        "deepspeed --module openrlhf.cli.train_sft --model.model_name_or_path data/arithmetic/model \
         --data.dataset data/arithmetic,more/chats.parquet --data.dataset_probs 0.75,0.25 --data.input_key messages \
         --data.apply_chat_template --data.multiturn --data.max_len 4096 --eval.dataset data/arithmetic --eval.split test \
         --adam.weight_decay 0.1",
    ),
    (
        "openrlhf-pretrain",
        &OPENRLHF,
        "deepspeed --module openrlhf.cli.train_sft --pretrain data/arithmetic/model --dataset data/arithmetic --input_key text \
         --pretrain_mode --packing_samples --bf16",
    ),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/peers")
}

/// Loads a recipe like a run.
fn load(converted: &PeerConversion, path: &std::path::Path) -> Result<(), ConfigError> {
    let kind = KINDS.iter().find(|known| known.kind == converted.kind).unwrap();
    let request = Request { config: Some(path.display().to_string()), ..Request::default() };
    kind.load(&request, &choices(kind.kind)).map(drop)
}

#[test]
fn recipes_are_as_written_and_load() {
    for (name, peer, command) in CASES {
        let converted = converted(peer, &words(command), None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let path = folder().join(format!("{name}.yaml"));
        if std::env::var_os("BURNISH_BLESS").is_some() {
            std::fs::write(&path, &converted.recipe).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == converted.recipe, "{name}.yaml is out of date: scripts/bless\n{}", converted.recipe);
        if converted.missing.is_empty() {
            load(&converted, &path).unwrap_or_else(|error| panic!("{name}: {error}"));
        } else {
            assert!(load(&converted, &path).is_err(), "{name}: a recipe with holes loads");
        }
    }
}

#[test]
fn a_recipe_has_what_the_command_gives() {
    const SFT: &str = "deepspeed --module openrlhf.cli.train_sft --pretrain m --output_key a";
    for (peer, command, expected) in [
        (
            &OPENRLHF,
            format!("{SFT} --dataset x.jsonl,y.jsonl --dataset_probs 0.3,0.7"),
            &["- x.jsonl", "- y.jsonl", "- 0.3", "- 0.7"][..],
        ),
        (&OPENRLHF, format!("{SFT} --dataset data/arithmetic,y.jsonl"), &["- data/arithmetic/train.parquet", "- y.jsonl"]),
        (&OPENRLHF, "python -m openrlhf.cli.train_rm --pretrain m --dataset o/d".into(), &["prompt_key: null"]),
        (
            &OPENRLHF,
            "python -m openrlhf.cli.train_kto --pretrain m --dataset o/d".into(),
            &["without --output_key", "\"User: {}\\nAssistant: \""],
        ),
        (
            &TRL,
            "trl sft --dataset_text_field txt --completion_only_loss false".into(),
            &["text_key: txt", "data.completion_key=completion data.loss_mask=all"],
        ),
        (
            &TRL,
            "trl sft --assistant_only_loss --completion_only_loss false".into(),
            &["messages_key: messages", "loss_mask: assistant", "data.loss_mask=assistant"],
        ),
        (
            &TRL,
            "trl sft --dataset_text_field txt --completion_only_loss true".into(),
            &["completion_key: completion", "--dataset_text_field txt"],
        ),
        (&TRL, "trl sft --train_sampling_strategy group_by_length".into(), &["group_by_length is ignored"]),
        (&TRL, "trl sft --truncation_mode middle".into(), &["--truncation_mode middle: "]),
        (
            &TRL,
            "trl dpo --disable_dropout false".into(),
            &["--disable_dropout false (--no_disable_dropout): dropout is not implemented"],
        ),
        (
            &TRL,
            "trl reward --use_peft --lora_task_type SEQ_CLS".into(),
            &["a sequence classifier", "lora_dropout 0.05 is ignored"],
        ),
    ] {
        let converted = converted(peer, &words(&command), None).unwrap_or_else(|error| panic!("{command}: {error}"));
        for text in expected {
            assert!(converted.recipe.contains(text), "{command}: no `{text}` in\n{}", converted.recipe);
        }
        // The check of the overrides needs the built-in files.
        let has_weights = converted.overrides.iter().any(|one| one.starts_with("data.train_weights"));
        assert!(!has_weights || converted.missing.is_empty(), "{command}");
    }
}

#[test]
fn a_mixture_names_all_of_its_sets() {
    let text = "model_name_or_path: m\ndataset_name: q/r\ndatasets:\n- {path: o/d, name: part}\n- {path: nowhere.jsonl}\n\
                - {path: json, split: test, data_files: {train: a.jsonl, test: [b.jsonl, c.jsonl]}}\n\
                - {path: json, split: 'train[:10%]', data_files: d.jsonl}\n";
    let access = FileAccess { read: &|_| Ok(text.into()), files: &|_| None };
    let (options, stage) = (Some("options.yaml"), Some("sft"));
    let source =
        PeerSource { name: "command", calls: vec![], unknowns: vec![], options, edition: None, stage, processes: None, access };
    let recipe = convert(&TRL, &source).unwrap().recipe;
    let expected = "hf://datasets/o/d/part/train, nowhere.jsonl, b.jsonl, c.jsonl, split train[:10%] of d.jsonl";
    assert!(recipe.contains(expected) && recipe.contains("--dataset_name: TRL does not read it"), "{recipe}");
}

#[test]
fn what_is_not_here_is_refused_by_name() {
    for (peer, command, expected) in [
        (&TRL, "python examples/scripts/xpo.py --model_name_or_path x", "online DPO"),
        (&TRL, "trl frobnicate --x 1", "`frobnicate`"),
        (&TRL, "python train.py --x 1", "--algo"),
        (&TRL, "ls -l", "no command of TRL"),
        (&TRL, "trl grpo --num_generations four", "an integer"),
        (&TRL, "trl grpo --num_generations", "a value"),
        (&TRL, "trl grpo 4", "`4` does not belong"),
        (&OPENRLHF, "python -m openrlhf.cli.batch_inference --eval_task rm", "trainer data select"),
        (&OPENRLHF, "python -m openrlhf.cli.serve_rm --port 5000", "trainer serve-rm"),
    ] {
        let error = converted(peer, &words(command), None).expect_err(command).to_string();
        assert!(error.contains(expected), "{command}: {error}");
    }
    let edition = converted(&TRL, &words("trl grpo --beta 1"), Some("0.11")).unwrap_err().to_string();
    assert!(edition.contains("from 0.14.0 to 1.16.0"), "{edition}");
}
