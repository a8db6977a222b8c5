//! Finding configuration files: the one that was asked for, and those that its `defaults:` list names.

use super::Request;
use super::compat::files;
use super::error::Problem;
use super::provenance::Source;
use super::{embedded, suggest};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders of the current directory in which `--config` is also looked for.
const USUAL_FOLDERS: &[&str] = &["config", "recipes"];

/// In front of a name, it stands for the built-in file and no other.
pub const BUILT_IN: &str = "built-in:";

/// verl's folder of settings, and the built-in files that stand in for it where it is not on disk.
const VERLS_FOLDER: &str = "verl/trainer/config";
const VERLS_DEFAULTS: &str = "verl/2026-01/";

/// How messages call the folder of the built-in files.
const BUILT_IN_FOLDER: &str = "built-in config/";

/// Where included files are looked for, in this order: these folders, then the built-in files.
pub struct SearchPath {
    pub folders: Vec<PathBuf>,
    /// The name of the primary file below the first folder, without `.yaml`.
    pub primary: String,
    /// Whether the folders of built-in files are groups, too.
    pub built_in_groups: bool,
    /// The edition of verl whose own files are looked through instead of all others.
    pub edition: Option<String>,
}

/// Finds the file that the request names, or else the one called `default_name`; also where its includes are looked for.
pub fn primary(request: &Request, default_name: &str) -> Result<(Arc<Source>, SearchPath), Problem> {
    let wanted = request.config.as_deref().or(request.config_name.as_deref()).unwrap_or(default_name);
    let folders: Vec<PathBuf> = request.config_path.iter().chain(&request.config_dirs).cloned().collect();
    let usual = USUAL_FOLDERS.iter().map(PathBuf::from);
    let here = std::iter::once(PathBuf::new());
    let places: Vec<PathBuf> = match (&request.config, &request.config_path) {
        (None, Some(_)) => folders.clone(),
        (None, None) => folders.iter().cloned().chain(usual).collect(),
        (Some(_), _) => here.chain(folders.iter().cloned()).chain(usual).collect(),
    };
    let search = |folders, primary: &str| SearchPath { folders, primary: primary.into(), built_in_groups: false, edition: None };
    if let Some((edition, name)) = wanted.strip_prefix(files::PREFIX).and_then(|name| name.split_once('/'))
        && let Some(source) = verls(edition, name)
    {
        return Ok((source, SearchPath { edition: Some(edition.into()), ..search(vec![], name) }));
    }
    if let Some(source) = wanted.strip_prefix(BUILT_IN).and_then(built_in) {
        return Ok((source, search(vec![], wanted.trim_start_matches(BUILT_IN))));
    }
    let name = without_extension(wanted);
    let mut candidates: Vec<(&PathBuf, PathBuf)> = vec![];
    for (place, path) in places.iter().flat_map(|place| spellings(place, wanted).into_iter().map(move |path| (place, path))) {
        // An absolute path is the same in every place.
        if candidates.iter().all(|(_, known)| *known != path) {
            candidates.push((place, path));
        }
    }
    if let Some((place, path)) = candidates.iter().find(|(_, path)| path.is_file()) {
        // The folder of a file given as a path is where its names count from; a name may itself lead into a group's folder.
        // A built-in file that lies here as in its own repository takes its parts from where it does when it is built in.
        let is_rendered = name.contains('/') && built_in(name).is_some();
        let (own_folder, name) = match request.config {
            Some(_) if !is_rendered => {
                (path.parent().unwrap_or(Path::new("")).to_path_buf(), name.rsplit('/').next().unwrap_or(name))
            }
            _ => (place.to_path_buf(), name),
        };
        let folders = std::iter::once(own_folder).chain(folders).collect();
        return Ok((read(path)?, search(folders, name)));
    }
    if let Some(source) = built_in(name) {
        return Ok((source, search(folders, name)));
    }
    let tried: Vec<String> = candidates.iter().map(|(_, path)| path.display().to_string()).collect();
    let (defaults_of_verl, own): (Vec<&str>, Vec<&str>) = built_in_names().partition(|name| name.contains('/'));
    let mut known: Vec<String> = own.iter().chain(&defaults_of_verl).map(ToString::to_string).collect();
    places.iter().for_each(|place| known.extend(names_in(place, "")));
    let meant = suggest::did_you_mean(suggest::closest(name, known.iter().map(String::as_str)));
    let built_in = format!("{}, verl/EDITION/NAME such as {VERLS_DEFAULTS}{}", own.join(", "), default_name);
    let looked = format!("looked for {}, and the built-in files ({built_in})", tried.join(", "));
    let help = meant.map_or(looked.clone(), |meant| format!("{meant}\n{looked}"));
    Err(Problem::new("", format!("there is no configuration `{wanted}`")).help(help))
}

impl SearchPath {
    /// The file `group/option`, unless it is one of those that are being read already.
    pub fn find(&self, path: &str, reading: &[Arc<Source>]) -> Result<Option<Arc<Source>>, Problem> {
        let path = without_extension(path);
        if let Some(edition) = &self.edition {
            return Ok(verls(edition, path).filter(|source| !reading.iter().any(|open| open.name == source.name)));
        }
        let files = self.folders.iter().map(|folder| folder.join(format!("{path}.yaml")));
        for file in files.filter(|file| file.is_file()) {
            let source = read(&file)?;
            if !reading.iter().any(|open| open.name == source.name) {
                return Ok(Some(source));
            }
        }
        let verls = self.folders.iter().any(|folder| folder.ends_with(VERLS_FOLDER) && !folder.is_dir());
        let verls = verls.then(|| built_in(&format!("{VERLS_DEFAULTS}{path}"))).flatten();
        let mut found = verls.into_iter().chain(built_in(path));
        Ok(found.find(|source| !reading.iter().any(|open| open.name == source.name)))
    }

    /// Whether there is a folder of this name.
    pub fn is_group(&self, name: &str) -> bool {
        if let Some(edition) = &self.edition {
            return files::is_group(edition, name);
        }
        let built_in =
            || embedded::FILES.iter().any(|(file, _)| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')));
        self.folders.iter().any(|folder| folder.join(name).is_dir()) || self.built_in_groups && built_in()
    }

    /// The names of the files in a group's folder.
    pub fn options(&self, group: &str) -> Vec<String> {
        let prefix = if group.is_empty() { String::new() } else { format!("{group}/") };
        if let Some(edition) = &self.edition {
            return files::of(edition).filter_map(|(name, _)| name.strip_prefix(&prefix)).map(str::to_string).collect();
        }
        let built_in = embedded::FILES.iter().filter_map(|(name, _)| name.strip_prefix(&prefix).map(str::to_string));
        let mut names: Vec<String> = built_in.filter(|name| !name.contains('/')).collect();
        for folder in &self.folders {
            names.extend(names_in(&folder.join(group), "").into_iter().filter(|name| !name.contains('/')));
        }
        names.sort();
        names.dedup();
        names
    }
}

fn spellings(folder: &Path, name: &str) -> Vec<PathBuf> {
    let as_written = folder.join(name);
    if name.ends_with(".yaml") || name.ends_with(".yml") {
        return vec![as_written];
    }
    vec![folder.join(format!("{name}.yaml")), as_written]
}

fn without_extension(name: &str) -> &str {
    name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")).unwrap_or(name)
}

fn read(path: &Path) -> Result<Arc<Source>, Problem> {
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Arc::new(Source { name, text })),
        Err(error) => Err(Problem::new("", format!("cannot read {name}: {error}"))),
    }
}

/// Whether a text is one of the built-in files.
pub fn is_built_in(source: &Source) -> bool {
    source.name.starts_with(BUILT_IN_FOLDER)
}

/// Whether a file on disk is a built-in one word for word, as in a checkout of the project.
pub fn is_copy_of_built_in(source: &Source) -> bool {
    embedded::FILES.iter().any(|(_, text)| *text == source.text)
}

fn built_in(name: &str) -> Option<Arc<Source>> {
    let (name, text) = embedded::FILES.iter().find(|(known, _)| *known == name)?;
    Some(Arc::new(Source { name: format!("{BUILT_IN_FOLDER}{name}.yaml"), text: text.to_string() }))
}

/// A file of verl's own.
fn verls(edition: &str, path: &str) -> Option<Arc<Source>> {
    let text = files::find(edition, path)?;
    Some(Arc::new(Source { name: format!("{}{edition}/{path}.yaml", files::PREFIX), text: text.to_string() }))
}

/// The built-in files that stand for themselves, not for an option of a group.
fn built_in_names() -> impl Iterator<Item = &'static str> {
    embedded::FILES.iter().map(|(name, _)| *name).filter(|name| !name.contains('/') || name.starts_with("verl/"))
}

/// The YAML files of a folder and those below it, as names relative to it.
fn names_in(folder: &Path, prefix: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(if folder.as_os_str().is_empty() { Path::new(".") } else { folder }) else {
        return vec![];
    };
    let mut names = vec![];
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".yaml") {
            names.push(format!("{prefix}{stem}"));
        } else if !folder.as_os_str().is_empty() && entry.path().is_dir() && prefix.is_empty() {
            names.extend(names_in(&entry.path(), &format!("{name}/")));
        }
    }
    names
}
