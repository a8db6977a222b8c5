//! Finds configuration files: the requested file, and the files in its `defaults:` list.

use super::error::Problem;
use super::library::{BUILT_IN, Library, Pack};
use super::provenance::YamlSource;
use super::request::Request;
use super::suggest;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The search path of included files: first these folders, then the built-in files.
pub struct SearchPath {
    pub folders: Vec<PathBuf>,
    /// The name of the primary file below the first folder, without `.yaml`.
    pub primary: String,
    /// True if the folders of built-in files are groups, too.
    pub(crate) built_in_groups: bool,
    /// The folder of the primary file if that is a built-in recipe: its neighbours are found by name.
    pub(crate) recipes: Option<&'static str>,
    /// The closed set of files that is searched instead of the folders and the built-in files.
    pub pack: Option<&'static Pack>,
    /// The built-in files.
    pub library: &'static Library,
    /// The file whose settings are inserted.
    pub(crate) inserted: Option<Inserted>,
}

/// A file whose settings override a built-in file, and are themselves overridden by all that the user writes.
#[derive(Clone)]
pub struct Inserted {
    /// The name of the built-in file.
    pub above: &'static str,
    pub source: Arc<YamlSource>,
}

/// Finds the requested file, or the file `default_name`, and the search path of its included files.
///
/// # Errors
/// If the file does not exist or cannot be read.
pub fn primary(
    request: &Request,
    default_name: &str,
    library: &'static Library,
) -> Result<(Arc<YamlSource>, SearchPath), Problem> {
    let requested = request.config.as_deref().or(request.config_name.as_deref()).unwrap_or(default_name);
    let folders: Vec<PathBuf> = request.config_path.iter().chain(&request.config_dirs).cloned().collect();
    let usual = library.usual_folders.iter().map(PathBuf::from);
    let here = std::iter::once(PathBuf::new());
    let places: Vec<PathBuf> = match (&request.config, &request.config_path) {
        (None, Some(_)) => folders.clone(),
        (None, None) => folders.iter().cloned().chain(usual).collect(),
        (Some(_), _) => here.chain(folders.iter().cloned()).chain(usual).collect(),
    };
    let search = |folders, primary: &str| {
        let primary = primary.into();
        SearchPath { folders, primary, built_in_groups: false, recipes: None, pack: None, library, inserted: None }
    };
    for pack in &library.packs {
        if let Some(name) = requested.strip_prefix(pack.name.as_str())
            && let Some(source) = pack.file(name)
        {
            return Ok((source, SearchPath { pack: Some(pack), ..search(vec![], name) }));
        }
    }
    if let Some(source) = requested.strip_prefix(BUILT_IN).and_then(|name| library.file(name)) {
        return Ok((source, search(vec![], requested.trim_start_matches(BUILT_IN))));
    }
    let name = without_extension(requested);
    let mut candidates: Vec<(&PathBuf, PathBuf)> = vec![];
    for (place, path) in places.iter().flat_map(|place| spellings(place, requested).into_iter().map(move |path| (place, path))) {
        // An absolute path is the same in every folder, so it is listed once.
        if candidates.iter().all(|(_, known)| *known != path) {
            candidates.push((place, path));
        }
    }
    if let Some((place, path)) = candidates.iter().find(|(_, path)| path.is_file()) {
        // Names in a file given as a path are relative to the folder of the file; a name may itself lead into the folder of a
        // group. A copy of a built-in file, in a checkout of the repository, includes the same files as the built-in file.
        let is_rendered = name.contains('/') && library.file(name).is_some();
        let (own_folder, name) = match request.config {
            Some(_) if !is_rendered => {
                (path.parent().unwrap_or(Path::new("")).to_path_buf(), name.rsplit('/').next().unwrap_or(name))
            }
            _ => (place.to_path_buf(), name),
        };
        let folders = std::iter::once(own_folder).chain(folders).collect();
        return Ok((read(path)?, search(folders, name)));
    }
    if let Some(source) = library.file(name) {
        return Ok((source, search(folders, name)));
    }
    if let Some((known, source)) = library.recipe(name) {
        let (folder, own) = known.rsplit_once('/').unwrap_or(("", known));
        return Ok((source, SearchPath { recipes: Some(folder), ..search(folders, own) }));
    }
    let tried: Vec<String> = candidates.iter().map(|(_, path)| path.display().to_string()).collect();
    let (standing_in, own): (Vec<&str>, Vec<&str>) = library.names().partition(|name| name.contains('/'));
    let mut known: Vec<String> = own.iter().chain(&standing_in).map(ToString::to_string).collect();
    known.extend(library.recipe_names().map(str::to_owned));
    places.iter().for_each(|place| known.extend(names_in(place, "")));
    let suggestion = suggest::did_you_mean(suggest::closest(name, known.iter().map(String::as_str)));
    let stand_in = &library.stand_in;
    let built_in = format!("{}, {} such as {}{default_name}", own.join(", "), stand_in.pattern, stand_in.files);
    let looked = format!("looked for {}, and the built-in files ({built_in})", tried.join(", "));
    let help = suggestion.map_or(looked.clone(), |suggestion| format!("{suggestion}\n{looked}"));
    Err(Problem::new("", format!("there is no configuration `{requested}`")).help(help))
}

impl SearchPath {
    /// Returns the file `group/option`, unless it is already being read.
    pub fn find(&self, path: &str, reading: &[Arc<YamlSource>]) -> Result<Option<Arc<YamlSource>>, Problem> {
        let path = without_extension(path);
        if let Some(pack) = self.pack {
            return Ok(pack.file(path).filter(|source| !reading.iter().any(|open| open.name == source.name)));
        }
        let files = self.folders.iter().map(|folder| folder.join(format!("{path}.yaml")));
        for file in files.filter(|file| file.is_file()) {
            let source = read(&file)?;
            if !reading.iter().any(|open| open.name == source.name) {
                return Ok(Some(source));
            }
        }
        let is_missing = |folder: &PathBuf| folder.ends_with(self.library.stand_in.folder) && !folder.is_dir();
        let stand_in = self.folders.iter().any(is_missing).then(|| self.library.stand_in(path)).flatten();
        let recipe = |name: &str| self.library.recipe(name).map(|(_, source)| source);
        let neighbour = self.recipes.and_then(|folder| recipe(&format!("{folder}/{path}")));
        // The recipe is found by its path, too, so that a copy of one recipe can include another.
        let mut found = stand_in.into_iter().chain(neighbour).chain(self.library.file(path)).chain(recipe(path));
        Ok(found.find(|source| !reading.iter().any(|open| open.name == source.name)))
    }

    /// True if there is a folder with this name.
    pub fn is_group(&self, name: &str) -> bool {
        if let Some(pack) = self.pack {
            return pack.has_folder(name);
        }
        self.folders.iter().any(|folder| folder.join(name).is_dir()) || self.built_in_groups && self.library.has_folder(name)
    }

    /// Returns the names of the files in a group's folder.
    pub fn options(&self, group: &str) -> Vec<String> {
        let prefix = if group.is_empty() { String::new() } else { format!("{group}/") };
        if let Some(pack) = self.pack {
            return pack.names_below(&prefix).map(str::to_string).collect();
        }
        let built_in = self.library.names_below(&prefix).filter(|name| !name.contains('/'));
        let mut names: Vec<String> = built_in.map(str::to_string).collect();
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

/// Maximum size of a configuration file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

fn read(path: &Path) -> Result<Arc<YamlSource>, Problem> {
    let name = path.display().to_string();
    // The size limit also holds for a configuration from a pipe, as in `<(…)`.
    let read = || {
        let mut text = String::new();
        File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MAX_BYTES { Err(std::io::Error::other("it has more than 64 MiB")) } else { Ok(text) }
    };
    match read() {
        Ok(text) => Ok(Arc::new(YamlSource { name, text })),
        Err(error) => Err(Problem::new("", format!("cannot read {name}: {error}"))),
    }
}

/// Returns the YAML files of a folder and its subfolders, as names relative to the folder.
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
