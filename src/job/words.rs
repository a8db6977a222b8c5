//! The settings that are one of a few words, in the types of the layers that work with them. A word has the same name on both sides.

use crate::algorithm::rollout_correction::BypassLoss;
use crate::config::schema;
use crate::data::examples::{AssistantMask, Overlong, Packing};
use crate::data::{OnMalformed, Truncation};
use crate::rollout::Logprobs;

/// Converts each word of a setting into the word of the same name of a layer.
macro_rules! words {
    ($($setting:path => $layer:path { $($word:ident),+ })+) => {
        $(impl From<$setting> for $layer {
            fn from(setting: $setting) -> Self {
                match setting {
                    $(<$setting>::$word => Self::$word,)+
                }
            }
        })+
    };
}

words! {
    schema::StageTruncation => Overlong { Error, Filter, Left, Right }
    schema::AssistantMask => AssistantMask { Auto, GenerationTags, Prefix }
    schema::Packing => Packing { Bfd, BfdSplit, Wrapped }
    schema::OnMalformedRow => OnMalformed { Error, Skip }
    schema::Truncation => Truncation { Error, Left, Right, Middle }
    schema::LogprobsMode => Logprobs { Processed, Raw }
    schema::BypassLossType => BypassLoss { PpoClip, Reinforce }
}
