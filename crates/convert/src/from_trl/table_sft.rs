//! Options of TRL's SFT trainer.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const NOT_PADDED: &str = "always so: a pass holds its rows without padding, each its own sequence";

pub const ROWS: &[TreatmentRow] = &[
    (
        "max_length max_seq_length",
        "",
        Read("`data.max_length`; 1024 where an edition has no default. A null in a file cuts nothing: `data.truncation=error`"),
    ),
    (
        "truncation_mode",
        "",
        Read("`data.truncation`: `right` for `keep_start`, `left` for `keep_end`, which packing does not read"),
    ),
    (
        "completion_only_loss",
        "sft",
        Read(
            "`true`: `data.completion_key=completion` with `data.loss_mask=completion`. `false` is about rows of prompt and completion alone, and a recipe says what they have",
        ),
    ),
    (
        "assistant_only_loss",
        "sft",
        Read(
            "`data.loss_mask=assistant`: every turn of the assistant is trained on, without it everything, in conversations `data.messages_key=messages`; with `completion_only_loss` `[assistant, completion]`",
        ),
    ),
    (
        "packing",
        "sft",
        Read(
            "`data.packing`: `data.train_batch_size` then counts units of max_length tokens, as TRL's batch does. Units are made of the whole data set, in TRL of 1000 rows at a time",
        ),
    ),
    ("packing_strategy", "sft", Read("`data.packing`, by the same name; `wrapped` in the edition without it")),
    (
        "eval_packing",
        "sft",
        Read(
            "validation rows are joined as training rows are, which with `bfd` changes no metric; with others it is refused where it differs",
        ),
    ),
    ("packing packing_strategy eval_packing", "gkd", Ignored("GKDTrainer joins no rows, whatever this says")),
    ("padding_free pad_to_multiple_of", "sft", Ignored(NOT_PADDED)),
    ("eval_on_start", "sft", Ignored("validation comes with the steps of test_freq, and at the end")),
    ("num_of_sequences chars_per_token", "", Ignored("they bound a buffer: rows are joined in memory")),
    (
        "dataset_text_field",
        "sft",
        Read(
            "`data.text_key` where it is given: all of a text is trained on, with its end. Without it rows are conversations. With `completion_only_loss` or `assistant_only_loss` TRL does not read it, and a recipe says so",
        ),
    ),
    ("dataset_text_field", "gkd", Ignored("rows are conversations, whatever this says")),
    ("dataset_kwargs", "", Refused("rows are always prepared here")),
    ("chat_template_path", "", Refused("write the template itself as model.custom_chat_template")),
    ("eos_token", "", Refused("a response ends with the tokenizer's own end token: change it in tokenizer_config.json")),
    ("pad_token", "", Ignored("nothing is padded")),
    (
        "shuffle_dataset",
        "sft",
        Ignored("rows are shuffled anew in each epoch, as transformers does; data.shuffle=false keeps their order"),
    ),
    ("loss_type", "sft", Read("`algorithm.loss_type`: `nll`, which `chunked_nll` is too, and `dft`")),
    ("label_smoothing_factor", "sft", Key("algorithm.label_smoothing")),
    ("neftune_noise_alpha", "sft", Read("`algorithm.neftune_noise_alpha`; null for 0")),
    ("activation_offloading", "", Ignored("activations are kept on the device; gradient_checkpointing recomputes them")),
    ("use_liger", "", Ignored("there is no torch: the head always works in chunks of tokens")),
];
