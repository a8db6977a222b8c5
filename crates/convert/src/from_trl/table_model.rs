//! Options of TRL's `ModelConfig`, of its data sets and of the scripts.

use crate::peers::OptionTreatment::{Ignored, Read, Refused};
use crate::peers::TreatmentRow;

const ADAPTERS: &str = "adapters are plain LoRA, as PEFT starts them, on the matrices of the blocks";
const QUANTISED: &str = "there are no quantised weights";

pub const ROWS: &[TreatmentRow] = &[
    (
        "model_name_or_path",
        "",
        Read(
            "`actor_rollout_ref.model.path`, in SFT `model.path`; for the original RLOO and PPO trainers `data.tokenizer`, where it differs from the model",
        ),
    ),
    ("model_revision", "", Refused("a model is a folder here: download that revision and name its folder")),
    ("torch_dtype dtype", "", Ignored("weights, optimizer and losses are float32; bf16 chooses the numbers of matrix products")),
    ("trust_remote_code", "", Ignored("the only Python code that is run is that of rewards, tools and environments")),
    ("attn_implementation", "", Ignored("attention is built in")),
    (
        "use_peft",
        "",
        Read(
            "`lora_rank`, `lora_alpha`, `target_modules` under `actor_rollout_ref.model`, in SFT under `model` ([LoRA](lora.md))",
        ),
    ),
    ("lora_r", "", Read("`lora_rank`, with `--use_peft`")),
    ("lora_alpha", "", Read("`lora_alpha`, with `--use_peft`; with `--use_rslora` times √`lora_r`")),
    (
        "lora_target_modules",
        "",
        Read("`target_modules`, with `--use_peft`; without it `[q_proj, v_proj]`, which is what PEFT chooses for most families"),
    ),
    ("use_rslora", "", Read("a larger `lora_alpha`: `lora_alpha` × √`lora_r`")),
    (
        "lora_dropout",
        "rloo grpo ppo online_dpo",
        Read("ignored, and said with `--use_peft`: dropout is not applied, the policy that samples is the one that is trained"),
    ),
    (
        "lora_dropout",
        "",
        Read("ignored, and said with `--use_peft`: there is no dropout, the loss is that of the model as it will be used"),
    ),
    ("lora_target_parameters", "", Refused(ADAPTERS)),
    ("lora_modules_to_save", "", Refused(ADAPTERS)),
    ("use_dora", "", Refused(ADAPTERS)),
    ("lora_task_type", "reward", Ignored("adapters are on a classifier of sequences, whatever this says")),
    ("lora_task_type", "", Ignored("adapters are on a causal language model, whatever this says")),
    ("load_in_8bit load_in_4bit", "", Refused(QUANTISED)),
    ("bnb_4bit_quant_type bnb_4bit_quant_storage use_bnb_nested_quant", "", Ignored(QUANTISED)),
    ("model_init_kwargs", "", Refused("a model is what its own config.json says: change it there")),
    ("router_aux_loss_coef", "", Refused("there are no mixture-of-experts models")),
    ("disable_dropout", "", Ignored("dropout is never applied")),
    ("dataset_name", "", Read("`data.train_files`: the files of that split, where the name is a local folder or file")),
    ("dataset_train_split", "", Read("which files of the folder are `data.train_files`")),
    ("dataset_test_split", "", Read("which files of the folder are `data.val_files`, where there is an evaluation")),
    ("dataset_config", "", Read("part of the name of the data set that is to be fetched")),
    ("datasets", "", Read("`data.train_files`: the `data_files` of each, or the files of the folder in `path`")),
    ("test_split_size", "", Refused("validation rows are a file of their own: data.val_files")),
    ("streaming dataset_streaming", "", Ignored("files are read once, before training")),
    ("ignore_bias_buffers", "", Ignored("there is no torch, and no buffers that processes would copy")),
    ("gradient_checkpointing_use_reentrant", "", Ignored("there is one way to recompute activations")),
    ("dataset_num_proc dataset_batch_size", "", Ignored("rows are read by as many threads as there are processors")),
];
