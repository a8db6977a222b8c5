//! Options of TRL's SFT trainer.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const NOT_PADDED: &str = "always on: rows are packed without padding, as separate sequences";

pub(super) const ROWS: &[TreatmentRow] = &[
    (
        "max_length max_seq_length",
        "",
        Read("`data.max_length`, default 1024; null (no truncation) becomes `data.truncation=error`"),
    ),
    ("truncation_mode", "", Read("`data.truncation`: `right` for `keep_start`, `left` for `keep_end`; no effect with packing")),
    (
        "completion_only_loss",
        "sft",
        Read("`true`: `data.completion_key=completion data.loss_mask=completion`; `false`: a note in the recipe"),
    ),
    (
        "assistant_only_loss",
        "sft",
        Read("`data.loss_mask=assistant`, else `all`; with `completion_only_loss` `[assistant, completion]`"),
    ),
    (
        "packing",
        "sft",
        Read("`data.packing`: batches count units of max_length tokens; units are made from the whole data set, not 1000 rows"),
    ),
    ("packing_strategy", "sft", Read("`data.packing`, with the same names; `wrapped` in the edition without it")),
    (
        "eval_packing",
        "sft",
        Read("validation rows are packed like training rows: no effect with `bfd`, otherwise refused if it differs"),
    ),
    ("packing packing_strategy eval_packing", "gkd", Ignored("GKDTrainer never packs rows")),
    ("padding_free pad_to_multiple_of", "sft", Ignored(NOT_PADDED)),
    ("eval_on_start", "sft", Ignored("validation runs every `test_freq` steps and at the end")),
    ("num_of_sequences chars_per_token", "", Ignored("these set the size of a buffer; here rows are packed in memory")),
    (
        "dataset_text_field",
        "sft",
        Read("`data.text_key` if given, else rows are conversations; ignored with a loss mask, with a note in the recipe"),
    ),
    ("dataset_text_field", "gkd gold", Ignored("rows are always conversations")),
    ("dataset_kwargs", "", Refused("rows are always tokenized at the start of a run")),
    ("chat_template_path", "", Refused("set model.custom_chat_template to the text of the template")),
    ("eos_token", "", Refused("change the end token in tokenizer_config.json")),
    ("pad_token", "", Ignored("there is no padding")),
    (
        "shuffle_dataset",
        "sft",
        Ignored("every epoch shuffles the rows, as in transformers; data.shuffle=false keeps their order"),
    ),
    ("loss_type", "sft", Read("`algorithm.loss_type`: `nll` (also for `chunked_nll`), `dft`")),
    ("label_smoothing_factor", "sft", Key("algorithm.label_smoothing")),
    ("neftune_noise_alpha", "sft", Read("`algorithm.neftune_noise_alpha`; null for 0")),
    ("activation_offloading", "", Ignored("activations stay on the device; gradient_checkpointing recomputes them")),
    ("use_liger", "", Ignored("the head always works in chunks of tokens")),
];
