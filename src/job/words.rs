//! The settings that are one of a few words, in the types of the layers that work with them. A word has the same name on both sides.

use burnish_algorithm::rollout_correction::BypassLoss;
use burnish_config::schema;
use burnish_data::examples::{AssistantMask, Overlong, Packing};
use burnish_data::{OnMalformed, Truncation};
use burnish_rollout::Logprobs;

/// A setting that is one of a few words, as the layer `L` names it.
pub trait ToLayer<L> {
    /// Returns the word of the same name of the layer.
    fn to_layer(self) -> L;
}

/// Converts each word of a setting into the word of the same name of a layer.
macro_rules! words {
    ($($setting:path => $layer:path { $($word:ident),+ })+) => {
        $(impl ToLayer<$layer> for $setting {
            fn to_layer(self) -> $layer {
                match self {
                    $(Self::$word => <$layer>::$word,)+
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
