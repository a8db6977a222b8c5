//! The files of a name on the Hub, from the cache or downloaded into it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;

use super::cache::CachedRepo;
use super::card;
use super::client::HubClient;
use super::dataset_files::{self, CONVERTED, ChosenData, Purpose};
use super::download::download;
use super::environment::Environment;
use super::error::{HubError, HubErrorKind};
use super::listing::{Checksum, Listing, RemoteFile};
use super::model_files::{self, ChosenModel, INDEX, ModelParts};
use super::name::{HubName, RepoKind};
use super::progress::{DownloadProgress, size};
use burnish_util::excerpt::beginning;
use burnish_util::foreign;
use burnish_util::platform::free_space;

const README: &str = "README.md";
/// The size limit of a README.md, in bytes; a README.md with a thousand configurations has a million.
const MAX_README: u64 = 16 << 20;
/// The number of bytes that must stay free on the disk.
const SPARE: u64 = 64 << 20;

/// Access to models and data sets of the Hub, with its cache.
pub struct Hub {
    client: HubClient,
    /// True to ask the Hub for the commit of each revision, even if the cache has one.
    refreshes: bool,
}

/// The files of a name.
#[derive(Debug, PartialEq)]
pub struct HubFiles {
    /// Folder of a model, or files of a data set.
    pub paths: Vec<PathBuf>,
    /// Name with the commit in place of its revision, and with the chosen part.
    pub name: HubName,
    /// The choice among several parts, in words; empty without alternatives.
    pub choice: String,
    /// Size of the weights that were not requested and are not cached, in bytes.
    pub left_out: u64,
}

/// A repository at a commit.
struct Snapshot {
    repo: CachedRepo,
    commit: String,
    listing: Listing,
    /// True if the listing is the Hub's; false if it has only the cached files.
    is_listed: bool,
}

impl Hub {
    /// Uses the environment of this process.
    ///
    /// # Errors
    /// If a variable has an invalid value.
    pub fn from_env() -> Result<Self, HubError> {
        Self::new(Environment::from_env()?)
    }

    /// Uses an environment.
    ///
    /// # Errors
    /// If the token has characters that an HTTP header must not have.
    pub fn new(environment: Environment) -> Result<Self, HubError> {
        Ok(Self { client: HubClient::new(environment)?, refreshes: false })
    }

    /// Makes it ask for the newest commit of each revision.
    pub fn refreshing(self) -> Self {
        Self { refreshes: true, ..self }
    }

    /// Finds or downloads a model.
    ///
    /// # Errors
    /// If it is not cached and cannot be downloaded, or has an unsupported format.
    pub fn model(&self, name: &HubName, parts: ModelParts) -> Result<HubFiles, HubError> {
        let snapshot = self.open(name)?;
        let index = self.index(name, &snapshot)?;
        let snapshot = match snapshot.is_listed || model_files::looks_complete(&snapshot.listing, name, parts, index.as_deref()) {
            true => snapshot,
            false => {
                let (cached, parts) = (&snapshot.listing, parts);
                let usable = model_files::choose(cached, name, parts, index.as_deref()).is_ok();
                self.with_listing(name, snapshot, usable)?
            }
        };
        let index = self.index(name, &snapshot)?;
        let ChosenModel { paths, left_out } = model_files::choose(&snapshot.listing, name, parts, index.as_deref())?;
        self.fetch(name, &snapshot, &paths)?;
        let left_out = self.missing(&snapshot, &left_out).values().map(|file| file.size).sum();
        let folder = snapshot.repo.snapshot(&snapshot.commit);
        Ok(HubFiles {
            paths: vec![if name.rest.is_empty() { folder } else { folder.join(&name.rest) }],
            name: HubName { revision: Some(snapshot.commit), ..name.clone() },
            choice: String::new(),
            left_out,
        })
    }

    /// Finds or downloads the files of a data set.
    ///
    /// # Errors
    /// If they are not cached and cannot be downloaded, or the name is ambiguous.
    pub fn data(&self, name: &HubName, purpose: Purpose) -> Result<HubFiles, HubError> {
        let mut name = name.clone();
        let mut snapshot = self.open(&name)?;
        if !dataset_files::has_data(&snapshot.listing) && name.revision.is_none() {
            // The Hub has converted most data sets in other formats.
            let converted = HubName { revision: Some(CONVERTED.to_owned()), ..name.clone() };
            match self.open(&converted) {
                Ok(existing) => (name, snapshot) = (converted, existing),
                Err(error) if error.kind == HubErrorKind::Permanent => {}
                Err(error) => return Err(error),
            }
        }
        if !snapshot.is_listed {
            let chosen = self.choose_data(&name, &snapshot, purpose);
            let is_complete = chosen.as_ref().is_ok_and(|chosen| dataset_files::looks_complete(&chosen.paths));
            if !is_complete {
                snapshot = self.with_listing(&name, snapshot, chosen.is_ok())?;
            }
        }
        let ChosenData { paths, part, choice } = self.choose_data(&name, &snapshot, purpose)?;
        self.fetch(&name, &snapshot, &paths)?;
        let folder = snapshot.repo.snapshot(&snapshot.commit);
        Ok(HubFiles {
            paths: paths.iter().map(|path| folder.join(path)).collect(),
            name: HubName { revision: Some(snapshot.commit), rest: part, ..name },
            choice,
            left_out: 0,
        })
    }

    fn choose_data(&self, name: &HubName, snapshot: &Snapshot, purpose: Purpose) -> Result<ChosenData, HubError> {
        let readme = match self.readme(name, snapshot) {
            Err(error) if error.kind == HubErrorKind::Unreachable => {
                tracing::warn!("{name}: README.md is not in the cache; splits are inferred from file names");
                String::new()
            }
            readme => readme?,
        };
        let cards = card::configs(&readme).unwrap_or_else(|error| {
            tracing::warn!("{name}: the YAML of README.md is ignored, because it is invalid: {error}");
            vec![]
        });
        dataset_files::choose(&snapshot.listing, name, &cards, purpose)
    }

    /// Returns the text of README.md; empty without such a file.
    fn readme(&self, name: &HubName, snapshot: &Snapshot) -> Result<String, HubError> {
        if !snapshot.listing.files.contains_key(README) {
            return Ok(String::new());
        }
        self.get(name, snapshot, &[README.to_owned()])?;
        let path = snapshot.repo.snapshot(&snapshot.commit).join(README);
        Ok(String::from_utf8_lossy(&foreign::read(&path, MAX_README)?).into_owned())
    }

    /// Returns the index of a model's shards; `None` for a model in one file.
    fn index(&self, name: &HubName, snapshot: &Snapshot) -> Result<Option<String>, HubError> {
        if name.kind != RepoKind::Model || !model_files::is_sharded(&snapshot.listing, name) {
            return Ok(None);
        }
        let path = model_files::at(name, INDEX);
        self.get(name, snapshot, std::slice::from_ref(&path))?;
        Ok(Some(foreign::read_text(&snapshot.repo.snapshot(&snapshot.commit).join(path), foreign::SETTINGS)?))
    }

    /// Opens the repository at the cached commit of the revision, else at the Hub's.
    fn open(&self, name: &HubName) -> Result<Snapshot, HubError> {
        let repo = CachedRepo::new(&self.client.environment.cache, name);
        let known = repo.commit(name.revision()).filter(|commit| !self.refreshes || commit == name.revision());
        let Some(commit) = known else { return self.ask(name, name.revision()) };
        let listing = repo.listing(&commit);
        let is_listed = listing.is_some();
        let present = || {
            let file = |path: String| {
                let size = fs::metadata(repo.snapshot(&commit).join(&path)).map_or(0, |existing| existing.len());
                // This entry never leads to a download, so that its checksum is not used.
                (path, RemoteFile { size, checksum: Checksum::Git(String::new()) })
            };
            Listing { files: repo.present(&commit).into_iter().map(file).collect(), license: None }
        };
        let listing = listing.unwrap_or_else(present);
        match is_listed || !listing.files.is_empty() {
            true => Ok(Snapshot { listing, is_listed, commit, repo }),
            false => self.ask(name, &commit),
        }
    }

    /// Returns the repository with the Hub's listing. If the Hub cannot be reached and the cached files are `usable`, returns
    /// `cached`.
    fn with_listing(&self, name: &HubName, cached: Snapshot, usable: bool) -> Result<Snapshot, HubError> {
        match self.ask(name, &cached.commit) {
            Err(error) if usable && error.kind != HubErrorKind::Permanent => {
                tracing::warn!("{name}: the cache may lack some files: {}", error.message);
                Ok(cached)
            }
            answered => answered,
        }
    }

    /// Asks the Hub for the commit of a revision and its files.
    fn ask(&self, name: &HubName, revision: &str) -> Result<Snapshot, HubError> {
        self.check_online(name, "it is not in the cache")?;
        let (commit, listing) = Listing::request(&self.client, name, revision).map_err(|error| self.with_advice(name, error))?;
        let repo = CachedRepo::new(&self.client.environment.cache, name);
        repo.set_listing(&commit, &listing)?;
        Ok(Snapshot { repo, commit, listing, is_listed: true })
    }

    /// Downloads the missing files of a commit, and logs the download.
    fn fetch(&self, name: &HubName, snapshot: &Snapshot, paths: &[String]) -> Result<(), HubError> {
        let missing = self.missing(snapshot, paths);
        let absent: Vec<_> = missing.into_iter().filter(|(_, file)| !snapshot.repo.has_content(file)).collect();
        let start = Instant::now();
        if let Some((first, _)) = absent.first() {
            self.check_online(name, &format!("its {first} is not in the cache"))?;
            let environment = &self.client.environment;
            let bytes: u64 = absent.iter().map(|(_, file)| file.size).sum();
            let license = beginning(snapshot.listing.license.as_deref().unwrap_or("not stated"));
            let files = if absent.len() == 1 { "1 file".to_owned() } else { format!("{} files", absent.len()) };
            tracing::info!(
                "downloading {name}: {files}, {}, licence: {license}; from {} to {}",
                size(bytes),
                environment.url(""),
                snapshot.repo.folder().display()
            );
        }
        self.get(name, snapshot, paths)?;
        if !absent.is_empty() {
            tracing::info!("downloaded {name} in {:.1} s", start.elapsed().as_secs_f64());
        }
        if snapshot.is_listed {
            snapshot.repo.set_commit(name.revision(), &snapshot.commit)?;
        }
        Ok(())
    }

    /// Returns the files that are not cached.
    fn missing<'a>(&self, snapshot: &'a Snapshot, paths: &'a [String]) -> BTreeMap<&'a str, &'a RemoteFile> {
        let file = |path: &'a String| Some((path.as_str(), snapshot.listing.files.get(path)?));
        let selected = paths.iter().filter_map(file);
        selected.filter(|(path, file)| !snapshot.repo.has(&snapshot.commit, path, file)).collect()
    }

    /// Downloads the missing files of a commit.
    fn get(&self, name: &HubName, snapshot: &Snapshot, paths: &[String]) -> Result<(), HubError> {
        let missing = self.missing(snapshot, paths);
        let (repo, commit) = (&snapshot.repo, &snapshot.commit);
        let (linked, absent): (Vec<_>, Vec<_>) = missing.into_iter().partition(|(_, file)| repo.has_content(file));
        for (path, file) in linked {
            repo.link(commit, path, file)?;
        }
        let Some((first, _)) = absent.first() else { return Ok(()) };
        self.check_online(name, &format!("its {first} is not in the cache"))?;
        let total: u64 = absent.iter().map(|(_, file)| file.size).sum();
        let started: u64 = absent.iter().filter_map(|(_, file)| Some(fs::metadata(repo.part(file)).ok()?.len())).sum();
        check_space(&repo.folder(), total.saturating_sub(started))?;
        let mut bar = DownloadProgress::new(total, self.client.environment.has_bar);
        for (path, file) in absent {
            // A file of another size is not the content.
            let content = repo.content(file);
            if content.symlink_metadata().is_ok() && !repo.has_content(file) {
                fs::remove_file(&content).with_context(|| format!("cannot remove {}", content.display()))?;
            }
            let done = download(&self.client, name, commit, (path, file), repo, &mut bar);
            done.map_err(|error| self.with_advice(name, error))?;
            repo.link(commit, path, file)?;
        }
        Ok(())
    }

    /// Returns an error if `HF_HUB_OFFLINE` is set; `why` tells why a request is needed.
    fn check_online(&self, name: &HubName, why: &str) -> Result<(), HubError> {
        if !self.client.environment.offline {
            return Ok(());
        }
        let message = format!("{} `{name}` cannot be downloaded, because HF_HUB_OFFLINE is set: {why}", name.kind.label());
        Err(self.with_advice(name, HubError { message, help: String::new(), kind: HubErrorKind::Unreachable }))
    }

    /// Adds advice for a machine that cannot reach the Hub: download on another machine and copy.
    fn with_advice(&self, name: &HubName, error: HubError) -> HubError {
        if error.kind == HubErrorKind::Permanent || !error.help.is_empty() {
            return error;
        }
        let address = name.address();
        let kind = if name.kind == RepoKind::Model { "" } else { " --repo-type dataset" };
        let folder = CachedRepo::new(&self.client.environment.cache, name).folder();
        let cache = &self.client.environment.cache;
        let help = format!(
            "on a machine that reaches the Hub, run `trainer fetch {address}` and copy the folder {} from its cache to {}; or run \
             `hf download {}{kind} --local-dir FOLDER` there, copy FOLDER and give its path",
            folder.file_name().unwrap_or_default().to_string_lossy(),
            cache.display(),
            name.repo
        );
        let message = match error.message.contains(&name.repo) {
            true => error.message,
            false => format!("{} `{name}` cannot be downloaded: {}", name.kind.label(), error.message),
        };
        HubError { message, help, ..error }
    }
}

/// Returns an error if the disk is too small for a download.
fn check_space(folder: &Path, bytes: u64) -> Result<(), HubError> {
    let Some(existing) = folder.ancestors().find(|path| path.is_dir()) else { return Ok(()) };
    let Some(free) = free_space(existing) else { return Ok(()) };
    if free >= bytes.saturating_add(SPARE) {
        return Ok(());
    }
    let message = format!("the download needs {}, but only {} are free in {}", size(bytes), size(free), existing.display());
    Err(HubError::permanent(message, "free some space, or set HF_HOME to a folder on another disk"))
}
