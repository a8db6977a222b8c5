//! Options of TRL's SFT trainer.

use super::super::peers::Fate::{Ignored, Read, Refused};
use super::super::peers::Row;

const ALWAYS_PACKED: &str = "rows are always packed without padding, and examples never see each other";

pub const ROWS: &[Row] = &[
    ("max_length max_seq_length", "", Read("`data.max_length`; 1024 where it is null")),
    ("truncation_mode", "", Read("`data.truncation`: `right` for `keep_start`, `left` for `keep_end`")),
    (
        "completion_only_loss",
        "",
        Read(
            "always so for rows of prompt and completion: `data.prompt_key=prompt data.response_key=completion`; `false` is refused",
        ),
    ),
    ("assistant_only_loss", "", Read("`data.messages_key=messages`: every turn of the assistant is trained on")),
    (
        "packing",
        "",
        Refused(
            "a batch counts examples here, and rows of max_length tokens in TRL: set data.train_batch_size to the examples of such a batch",
        ),
    ),
    ("packing_strategy eval_packing padding_free pad_to_multiple_of", "sft gkd", Ignored(ALWAYS_PACKED)),
    ("eval_on_start", "sft", Ignored("validation comes with the steps of test_freq, and at the end")),
    ("num_of_sequences chars_per_token", "", Ignored(ALWAYS_PACKED)),
    ("dataset_text_field", "", Refused("a row is a prompt and a response, or a conversation; plain text is not trained on")),
    ("dataset_kwargs", "", Refused("rows are always prepared here")),
    ("chat_template_path", "", Refused("write the template itself as model.custom_chat_template")),
    ("eos_token", "", Refused("a response ends with the tokenizer's own end token: change it in tokenizer_config.json")),
    ("pad_token", "", Ignored("nothing is padded")),
    (
        "shuffle_dataset",
        "sft",
        Ignored("rows are shuffled anew in each epoch, as transformers does; data.shuffle=false keeps their order"),
    ),
    ("loss_type", "sft", Read("`nll` and `chunked_nll` are the loss; others are refused by name")),
    ("activation_offloading", "", Ignored("activations are kept on the device; gradient_checkpointing recomputes them")),
    ("use_liger", "", Ignored("there is no torch: the head always works in chunks of tokens")),
];
