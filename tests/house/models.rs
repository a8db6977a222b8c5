//! `docs/models.md`: every model type of transformers, rendered from the registry of families and the reasons of the others.

use std::fmt::Write;

use burnish::model::families::{ABSENT, FAMILIES};
use burnish::model::hf_config::TEXT_PARTS;

use crate::docs::check;

/// Each line: a model type of transformers 5.24, and its kind of head there.
const TYPES: &str = include_str!("../data/transformers-5.24-model-types.txt");

/// The kinds of types without a causal language model, with the heading of their list.
const OTHERS: &[(&str, &str)] = &[
    ("image-text", "Models of images and text"),
    ("seq2seq", "Encoders with decoders, and models of speech"),
    ("other", "Parts of models, encoders, models of images, sound and time series"),
];

const HEAD: &str = "# Models of transformers

This page lists every `model_type` of transformers 5.24.0. ✔ means trained, sampled and saved, with values equal to
those of transformers. All others are refused, with the reason. [Families](algorithms.md#model-families) has the
details.

## Language models

| `model_type` | |
|---|---|
";

/// Returns the model types of a kind.
fn of_kind(kind: &str) -> Vec<&'static str> {
    TYPES.lines().filter_map(|line| line.split_once(' ')).filter(|(_, own)| *own == kind).map(|(name, _)| name).collect()
}

/// Returns the support of a model type, as a cell of a table.
fn support(model_type: &str) -> Option<String> {
    let family = FAMILIES.iter().find(|family| family.model_type == model_type).map(|_| "✔".to_owned());
    let part = TEXT_PARTS.iter().find(|part| part.whole == model_type).map(|part| format!("text part, as `{}`", part.model_type));
    let absent = ABSENT.iter().find(|absent| absent.model_types.contains(&model_type)).map(|absent| absent.reason.to_owned());
    let found: Vec<String> = [family, part, absent].into_iter().flatten().collect();
    assert!(found.len() < 2, "{model_type} has two verdicts: {found:?}");
    found.into_iter().next()
}

#[test]
fn generated_page_of_models_has_every_model_type_of_transformers() {
    let causal = of_kind("causal");
    for name in ABSENT.iter().flat_map(|absent| absent.model_types) {
        assert!(causal.contains(name), "families/absent.rs: {name} is not a causal language model of transformers 5.24");
    }
    let mut page = HEAD.to_owned();
    for name in causal {
        let support = support(name).unwrap_or_else(|| panic!("{name} has no verdict: add it to families/absent.rs"));
        writeln!(page, "| `{name}` | {support} |").unwrap();
    }
    for (kind, heading) in OTHERS {
        let (parts, refused): (Vec<_>, Vec<_>) = of_kind(kind).into_iter().partition(|name| support(name).is_some());
        write!(page, "\n## {heading}\n\n").unwrap();
        for name in parts {
            writeln!(page, "- `{name}`: {}", support(name).unwrap()).unwrap();
        }
        let names: Vec<String> = refused.iter().map(|name| format!("`{name}`")).collect();
        writeln!(page, "- Refused: {}.", names.join(", ")).unwrap();
    }
    check("docs/models.md", &page);
}
