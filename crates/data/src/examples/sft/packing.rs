//! Packing: joins documents to units of similar length, as in TRL, but over the whole data set and not per 1000 rows.

use std::collections::{BTreeMap, VecDeque};
use std::iter::once;

use crate::examples::document::{Document, SftExample};

/// The way to join documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Best fit, longest first. Documents stay separate sequences; documents longer than a unit are cut.
    Bfd,
    /// Like `Bfd`, but documents longer than a unit are split and no token is lost.
    BfdSplit,
    /// All documents one after another, cut into units: a document attends to earlier documents.
    Wrapped,
}

/// Joins documents to units of at most `length` tokens.
pub fn pack(documents: Vec<Document>, packing: Packing, length: usize) -> Vec<SftExample> {
    match packing {
        Packing::Wrapped => pieces(joined(&documents), length).map(SftExample::single).collect(),
        Packing::Bfd => best_fit(documents.into_iter().filter_map(|document| pieces(document, length).next()).collect(), length),
        Packing::BfdSplit => best_fit(documents.into_iter().flat_map(|document| pieces(document, length)).collect(), length),
    }
}

/// Splits a document into pieces of `length` tokens and the rest; an empty document has no pieces.
fn pieces(document: Document, length: usize) -> impl Iterator<Item = Document> {
    // Most documents fit and are not copied.
    let (full, cut) = if document.ids.len() <= length { (Some(document), None) } else { (None, Some(document)) };
    let parts = cut.into_iter().flat_map(move |Document { ids, weights }| {
        let parts: Vec<Document> = ids
            .chunks(length)
            .zip(weights.chunks(length))
            .map(|(ids, weights)| Document { ids: ids.to_vec(), weights: weights.to_vec() })
            .collect();
        parts
    });
    full.into_iter().filter(|document| !document.ids.is_empty()).chain(parts)
}

fn joined(documents: &[Document]) -> Document {
    let ids = documents.iter().flat_map(|document| &document.ids).copied().collect();
    Document { ids, weights: documents.iter().flat_map(|document| &document.weights).copied().collect() }
}

/// Puts each document, longest first, into the fitting unit with the least space; on ties, into the unit that had this space
/// first.
fn best_fit(mut documents: Vec<Document>, length: usize) -> Vec<SftExample> {
    documents.sort_by_key(|document| std::cmp::Reverse(document.ids.len()));
    let mut units: Vec<SftExample> = Vec::new();
    let mut by_space: BTreeMap<usize, VecDeque<usize>> = BTreeMap::new();
    for document in documents {
        let tokens = document.ids.len();
        let fitting =
            by_space.range_mut(tokens..).next().and_then(|(space, units)| Some((*space, units.pop_front()?, units.is_empty())));
        let space = match fitting {
            Some((space, unit, was_last)) => {
                if was_last {
                    by_space.remove(&space);
                }
                units[unit].documents.push(document);
                by_space.entry(space - tokens).or_default().push_back(unit);
                continue;
            }
            None => length - tokens,
        };
        by_space.entry(space).or_default().extend(once(units.len()));
        units.push(SftExample::single(document));
    }
    units
}
