//! OLMo 3 (`Olmo3ForCausalLM`): OLMo 2 with windows in three of four layers, which rotate without scaling.

use super::{Family, olmo2};
use crate::config::{DecoderConfig, Positions};
use crate::hf_reader::HfReader;
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "olmo3",
    class: "Olmo3",
    doc: "OLMo 3: OLMo 2 with windows in three of four layers, which rotate without scaling",
    read: |config| {
        // In the spelling of transformers 4, transformers 5 gives layers with a window its default base, not `rope_theta`.
        let [full, sliding] = RopeConfig::read_by_layer_type(config, 5e5, (None, 5e5))?;
        let common = olmo2::common(config, full)?;
        let local_rope = (common.positions != Positions::Rotary(sliding.clone())).then_some(sliding);
        Ok(DecoderConfig { local_rope, windows: config.windows(common.num_hidden_layers, HfReader::is_inside(4))?, ..common })
    },
};
