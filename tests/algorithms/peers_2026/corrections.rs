//! Corrections of the difference between generation and training.

use burnish::algorithm::rollout_correction::{CorrectionSettings, RolloutCorrection};
use serde_json::{Value, json};

use super::case::PeerCase;
use super::entry::{Entry, Precision, never};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    algorithm: "slime_tis",
    precision: Precision::Column,
    run: slime_tis,
    left_out: &[("clipped", "a sum over tokens that includes those of tools")],
    deviates: never,
}];

/// `tis_clip_low` and `tis_clip` are two bounds of the weight; icepop sets weights outside them to 0.
fn slime_tis(case: &PeerCase) -> Value {
    let (low, high) = (case.option_number("tis_clip_low"), case.option_number("tis_clip"));
    let settings = CorrectionSettings { rollout_is: Some("token".to_owned()), ..CorrectionSettings::default() };
    let settings = match case.option_word("function") {
        "icepop_function" => CorrectionSettings { rollout_is_threshold: Some(format!("{low}_{high}")), ..settings },
        _ => {
            CorrectionSettings { rollout_is_threshold: Some(high.to_string()), rollout_is_threshold_lower: Some(low), ..settings }
        }
    };
    let [old, rollout] = ["old_log_probs", "rollout_log_probs"].map(|name| case.column(name));
    let corrected = RolloutCorrection::new(&settings).unwrap().apply(&case.offsets, &case.mask, &old, &rollout);
    json!({ "weights": case.ragged(&corrected.weights.unwrap()) })
}
