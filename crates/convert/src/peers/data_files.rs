//! The files of data sets that a command names.

use super::draft::Draft;
use super::value::{list, text};
use burnish_hydra::Value;
use burnish_util::data_format::{DATA_ENDINGS, data_format};

/// The splits that file names can begin with.
const SPLITS: [&str; 4] = ["train", "test", "val", "eval"];

/// Returns the files of a split. In a local folder their names begin with the split; a single file without the name of a split
/// counts too. A path that does not exist is kept, or is a name on the Hub. Returns `None` for an invalid name, and for a partial
/// split such as `train[:10%]`.
pub(crate) fn files_of_split(draft: &Draft, set: &str, split: &str) -> Option<Vec<String>> {
    let Some(files) = (draft.files)(set) else {
        return on_hub(set, split).or_else(|| (is_path(set) && !split.contains('[')).then(|| vec![set.to_string()]));
    };
    let rows: Vec<String> = files.into_iter().filter(|file| data_format(file).is_some()).collect();
    let name = |file: &str| file.rsplit('/').next().unwrap_or_default().to_string();
    let named: Vec<String> = rows.iter().filter(|file| name(file).starts_with(split)).cloned().collect();
    let is_other = |file: &str| file != set && SPLITS.iter().any(|other| name(file).starts_with(other));
    let found = if named.is_empty() && rows.len() == 1 && !is_other(&rows[0]) { rows } else { named };
    (!found.is_empty() && !split.contains('[')).then_some(found)
}

/// Returns true for a text that is a path, not a name on the Hub.
fn is_path(set: &str) -> bool {
    ["/", "./", "../", "~"].iter().any(|start| set.starts_with(start)) || data_format(set).is_some()
}

/// Returns the address of a split on the Hub, for a data set `ORG/NAME` or `ORG/NAME/CONFIGURATION`.
fn on_hub(set: &str, split: &str) -> Option<Vec<String>> {
    let word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let named = matches!(set.split('/').count(), 2 | 3) && set.split('/').chain([split]).all(word);
    let file = data_format(set).is_some();
    (named && !file).then(|| vec![format!("hf://datasets/{set}/{split}")])
}

/// Sets a key to the files of a split, of one or several data sets.
pub(crate) fn set_files(draft: &mut Draft, key: &str, set: Option<&str>, split: &str, names: &str) {
    let Some(set) = set else {
        let rows = if key.ends_with("val_files") { "validation" } else { "training" };
        return draft.ask_user(key, format!("files of {rows} rows ({}): the command does not name a data set", DATA_ENDINGS));
    };
    let found = |one: &str| files_of_split(draft, one, split).ok_or_else(|| format!("split {split} of {one}"));
    let sets = sets(set).map(found).collect();
    set_all_files(draft, key, sets, names);
}

/// Splits the value of an option into data sets.
pub fn sets(option: &str) -> impl Iterator<Item = &str> {
    option.split(',').map(str::trim)
}

/// Sets a key to the files of all data sets. An error describes a data set without known files; then the user must set the key,
/// and the message lists all data sets.
pub(crate) fn set_all_files(draft: &mut Draft, key: &str, sets: Vec<Result<Vec<String>, String>>, names: &str) {
    let is_known = sets.iter().all(Result::is_ok);
    let files: Vec<String> = sets.into_iter().flat_map(|set| set.unwrap_or_else(|rows| vec![rows])).collect();
    if is_known {
        draft.set(key, one_or_list(files), names);
    } else {
        let source = draft.values.source(names);
        let of = if source.is_empty() { String::new() } else { format!("{source}: ") };
        draft.ask_user(key, format!("{of}{}, as files ({DATA_ENDINGS})", files.join(", ")));
    }
}

/// Returns a single item as a text, several items as a list.
pub(crate) fn one_or_list(items: Vec<String>) -> Value {
    match items.as_slice() {
        [one] => text(one.clone()),
        _ => list(items.into_iter().map(text)),
    }
}
