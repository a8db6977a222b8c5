//! Ministral (`MinistralForCausalLM`): Mistral with windows in the layers that `layer_types` names.

use super::{Family, mistral};

pub(super) const FAMILY: Family = Family {
    model_type: "ministral",
    class: "Ministral",
    doc: "Ministral: Mistral, with windows in the layers that `layer_types` names",
    read: mistral::FAMILY.read,
};
