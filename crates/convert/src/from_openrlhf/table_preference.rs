//! Options of OpenRLHF's trainers of preferences, reward models and distillation. They come first: other trainers use some names
//! differently.

use super::table_engine::NO_OFFLOAD;
use crate::peers::OptionTreatment::{Ignored, Key, Read};
use crate::peers::TreatmentRow;

pub(super) const ROWS: &[TreatmentRow] = &[
    ("model.beta beta", "", Key("algorithm.beta")),
    ("model.ipo_enable ipo", "", Read("`algorithm.loss_type=ipo_sum`")),
    ("model.label_smoothing label_smoothing", "", Key("algorithm.label_smoothing")),
    ("model.nll_loss_coef nll_loss_coef", "", Read("`algorithm.nll_loss_coef`; null for 0")),
    ("ref.model_name_or_path ref_pretrain", "train_dpo train_kto", Read("`ref.model.path`; default: the initial model")),
    ("ref.offload ref_offload teacher_offload", "train_dpo train_kto train_kd", Ignored(NO_OFFLOAD)),
    ("data.prompt_key prompt_key", "", Key("data.prompt_key")),
    ("data.chosen_key chosen_key", "", Key("data.chosen_key")),
    ("data.rejected_key rejected_key", "", Key("data.rejected_key")),
    ("input_key", "train_kto", Key("data.prompt_key")),
    ("output_key", "train_kto", Key("data.completion_key")),
    ("label_key", "train_kto", Key("data.label_key")),
    ("desirable_loss_weight", "", Key("algorithm.desirable_weight")),
    ("undesirable_loss_weight", "", Key("algorithm.undesirable_weight")),
    ("model.loss_type loss", "train_rm", Read("`algorithm.loss_type`: `sigmoid`, or `logexp` for other values")),
    ("model.margin_loss_enable margin_loss", "", Read("`data.margin_key=margin`")),
    ("model.compute_fp32_loss_enable compute_fp32_loss", "", Ignored("losses are always computed in float64")),
    ("ds.value_head_prefix value_head_prefix", "train_rm", Ignored("the head is always `score`, as in transformers")),
    ("input_key", "train_prm", Key("data.input_key")),
    ("label_key", "train_prm", Key("data.labels_key")),
    ("placeholder_token", "", Key("data.placeholder_token")),
    ("reward_tokens", "", Key("algorithm.reward_tokens")),
    ("teacher_model", "", Read("`teacher.path`")),
    ("kd_coef", "", Key("algorithm.kd_coef")),
];
