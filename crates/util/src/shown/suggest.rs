//! Suggests the closest candidate for a misspelt name ("Did you mean").

/// Returns the candidate that is most similar to `name` (Damerau–Levenshtein similarity, ignoring case), or `None` if no
/// candidate is close.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    candidates
        .into_iter()
        .map(|candidate| (candidate.to_lowercase(), candidate))
        // A name of more than twice the other's length is never close, and comparing a million characters takes seconds.
        .filter(|(lower, _)| length.min(lower.chars().count()) * 2 >= length.max(lower.chars().count()))
        .map(|(lower, candidate)| (strsim::normalized_damerau_levenshtein(&name, &lower), candidate))
        .filter(|(similarity, _)| *similarity >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns ` Did you mean "x"?` for the end of a message, or an empty text if no candidate is close.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    closest(name, candidates).map_or(String::new(), |candidate| format!(" Did you mean \"{candidate}\"?"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn finds_a_near_name_and_nothing_far_away() {
        assert_eq!(super::closest("tensorbord", ["console", "tensorboard"]), Some("tensorboard"));
        assert_eq!(super::closest("xyz", ["console", "tensorboard"]), None);
    }
}
