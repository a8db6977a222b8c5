//! Options of TRL's `ModelConfig`, of its data sets and of the scripts.

use crate::peers::OptionTreatment::{Ignored, Read, Refused};
use crate::peers::TreatmentRow;

const ADAPTERS: &str = "only plain LoRA on the weight matrices of the blocks is supported";

pub(super) const ROWS: &[TreatmentRow] = &[
    (
        "model_name_or_path",
        "",
        Read("`actor_rollout_ref.model.path`, in SFT `model.path`; for the original trainers `data.tokenizer`, if it differs"),
    ),
    ("model_revision", "", Refused("name the revision with the model: ORG/NAME@REVISION")),
    ("torch_dtype dtype", "", Ignored("weights, optimizer and losses are float32; `bf16` sets the precision of matmuls")),
    ("trust_remote_code", "", Ignored("a model's Python code is never run")),
    ("attn_implementation", "", Ignored("attention is built in")),
    (
        "use_peft",
        "",
        Read("`lora_rank`, `lora_alpha`, `target_modules` of `actor_rollout_ref.model`, in SFT of `model` ([LoRA](lora.md))"),
    ),
    ("lora_r", "", Read("`lora_rank`, with `--use_peft`")),
    ("lora_alpha", "", Read("`lora_alpha`, with `--use_peft`; times √`lora_r` with `--use_rslora`")),
    (
        "lora_target_modules",
        "",
        Read("`target_modules`, with `--use_peft`; default `[q_proj, v_proj]`, PEFT's choice for most families"),
    ),
    ("use_rslora", "", Read("a larger `lora_alpha`: `lora_alpha` × √`lora_r`")),
    ("lora_dropout", "", Read("ignored (with a warning under `--use_peft`): dropout is not implemented")),
    ("lora_target_parameters", "", Refused(ADAPTERS)),
    ("lora_modules_to_save", "", Refused(ADAPTERS)),
    ("use_dora", "", Refused(ADAPTERS)),
    ("lora_task_type", "reward", Ignored("adapters are always on a sequence classifier")),
    ("lora_task_type", "", Ignored("adapters are always on a causal language model")),
    ("load_in_8bit", "", Refused("supported is `load_in_4bit`")),
    ("load_in_4bit", "", Read("`load_in_4bit` of the model, with `--use_peft` ([weights in 4 bits](lora.md#weights-in-4-bits))")),
    ("bnb_4bit_quant_type", "", Read("`nf4`; others are refused with `--load_in_4bit`")),
    ("use_bnb_nested_quant", "", Read("`bnb_4bit_use_double_quant`, with `--load_in_4bit`")),
    ("bnb_4bit_quant_storage", "", Ignored("it does not change the values of weights")),
    ("model_init_kwargs", "", Refused("a model is loaded as its config.json describes: edit that file")),
    (
        "router_aux_loss_coef",
        "",
        Refused("the model's config.json decides: set output_router_logits to true and router_aux_loss_coef there"),
    ),
    ("disable_dropout", "", Ignored("dropout is not implemented")),
    ("config", "", Ignored("its options are read like those of the command, which count for more")),
    ("tp_size", "", Ignored("a process trains on one device")),
    ("dataset_name", "", Read("`data.train_files`: the files of the split in a local folder, or a name on the Hub")),
    ("dataset_train_split", "", Read("the split of `data.train_files`")),
    ("dataset_test_split", "", Read("the split of `data.val_files`, with an evaluation")),
    ("dataset_config", "", Read("part of the data set's name on the Hub")),
    ("datasets", "", Read("`data.train_files`: the `data_files` of each data set, or the files in the folder `path`")),
    ("test_split_size", "", Refused("put validation rows into a separate file: data.val_files")),
    ("streaming dataset_streaming", "", Ignored("all rows are read once, before training")),
    ("ignore_bias_buffers", "", Ignored("there are no torch buffers")),
    ("gradient_checkpointing_use_reentrant", "", Ignored("there is only one way to recompute activations")),
    ("dataset_num_proc dataset_batch_size", "", Ignored("rows are read with one thread per processor")),
];
