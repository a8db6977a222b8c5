//! Converts settings with a few allowed words to the enums of the layers that use them. A word has the same name on both sides.

use burnish_algorithm::rollout_correction::BypassLoss;
use burnish_config::schema;
use burnish_data::examples::{AssistantMask, Overlong, Packing};
use burnish_data::{ContextPlace, OnMalformed, Truncation};
use burnish_rollout::Logprobs;

/// A setting with a few allowed words, convertible to the enum `L` of a layer.
pub(crate) trait ToLayer<L> {
    /// Returns the variant of the same name.
    fn to_layer(self) -> L;
}

/// Implements [`ToLayer`] for each pair of enums, word by word.
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
    schema::AssistantMaskMethod => AssistantMask { Auto, GenerationTags, Prefix }
    schema::PackingMethod => Packing { Bfd, BfdSplit, Wrapped }
    schema::OnMalformedRow => OnMalformed { Error, Skip }
    schema::DataTruncation => Truncation { Error, Left, Right, Middle }
    schema::LogprobsMode => Logprobs { Processed, Raw }
    schema::TeacherContext => ContextPlace { User, System }
    schema::BypassLossType => BypassLoss { PpoClip, Reinforce }
}
