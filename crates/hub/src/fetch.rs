//! From a name on the Hub to files: out of the cache, or downloaded into it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use rustix::fs::statvfs;

use super::bar::{Bar, size};
use super::cache::CachedRepo;
use super::card;
use super::client::Client;
use super::dataset_files::{self, CONVERTED, ChosenData, Purpose};
use super::download::download;
use super::environment::Environment;
use super::failure::{Cause, Failure};
use super::listing::{Checksum, Listing, RemoteFile};
use super::model_files::{self, Chosen, INDEX, ModelParts};
use super::name::{HubName, Kind};
use burnish_util::foreign;

const README: &str = "README.md";
/// The largest size of a README.md, in bytes; those with a thousand configurations have a million.
const MOST_README: u64 = 16 << 20;
/// Bytes that stay free on the disk.
const SPARE: u64 = 64 << 20;

/// The Hub: its cache, and where it is asked for what is not there.
pub struct Hub {
    client: Client,
    /// True if the Hub is asked for the commit of each revision, whether or not the cache knows one.
    asks_anew: bool,
}

/// What was found for a name.
#[derive(Debug, PartialEq)]
pub struct Found {
    /// The folder of a model, or the files of a data set.
    pub paths: Vec<PathBuf>,
    /// The name, with the commit in place of its revision, and the part that was chosen.
    pub name: HubName,
    /// What was chosen where the name left a choice, in words; may be empty.
    pub because: String,
    /// Bytes of weights that were not asked for and are not here.
    pub left_out: u64,
}

/// A repository at a commit.
struct Snapshot {
    repo: CachedRepo,
    commit: String,
    listing: Listing,
    /// False if the listing is what happens to be in the cache.
    is_listed: bool,
}

impl Hub {
    /// The Hub of this process's environment.
    ///
    /// # Errors
    /// A variable with a value that cannot be meant.
    pub fn of_process() -> Result<Self, Failure> {
        Self::new(Environment::of_process()?)
    }

    /// The Hub of an environment.
    ///
    /// # Errors
    /// If the token has characters that no header may have.
    pub fn new(environment: Environment) -> Result<Self, Failure> {
        Ok(Self { client: Client::new(environment)?, asks_anew: false })
    }

    /// The same, which asks for the newest commit of each revision.
    pub fn asking_anew(self) -> Self {
        Self { asks_anew: true, ..self }
    }

    /// Finds or downloads a model.
    ///
    /// # Errors
    /// If it is not in the cache and cannot be downloaded, or is in a form that is not read here.
    pub fn model(&self, name: &HubName, parts: ModelParts) -> Result<Found, Failure> {
        let snapshot = self.open(name)?;
        let index = self.index(name, &snapshot)?;
        let snapshot = match snapshot.is_listed || model_files::looks_whole(&snapshot.listing, name, parts, index.as_deref()) {
            true => snapshot,
            false => {
                let (here, parts) = (&snapshot.listing, parts);
                let usable = model_files::choose(here, name, parts, index.as_deref()).is_ok();
                self.completed(name, snapshot, usable)?
            }
        };
        let index = self.index(name, &snapshot)?;
        let Chosen { paths, left_out } = model_files::choose(&snapshot.listing, name, parts, index.as_deref())?;
        self.fetch(name, &snapshot, &paths)?;
        let left_out = self.missing(&snapshot, &left_out).values().map(|file| file.size).sum();
        let folder = snapshot.repo.snapshot(&snapshot.commit);
        Ok(Found {
            paths: vec![if name.rest.is_empty() { folder } else { folder.join(&name.rest) }],
            name: HubName { revision: Some(snapshot.commit), ..name.clone() },
            because: String::new(),
            left_out,
        })
    }

    /// Finds or downloads the files of a data set.
    ///
    /// # Errors
    /// If they are not in the cache and cannot be downloaded, or the name does not say which they are.
    pub fn data(&self, name: &HubName, purpose: Purpose) -> Result<Found, Failure> {
        let mut name = name.clone();
        let mut snapshot = self.open(&name)?;
        if !dataset_files::has_data(&snapshot.listing) && name.revision.is_none() {
            // What is in another format was converted by the Hub, most often.
            let converted = HubName { revision: Some(CONVERTED.to_owned()), ..name.clone() };
            match self.open(&converted) {
                Ok(there) => (name, snapshot) = (converted, there),
                Err(failure) if failure.cause == Cause::Final => {}
                Err(failure) => return Err(failure),
            }
        }
        if !snapshot.is_listed {
            let chosen = self.choose_data(&name, &snapshot, purpose);
            let whole = chosen.as_ref().is_ok_and(|chosen| dataset_files::looks_whole(&chosen.paths));
            if !whole {
                snapshot = self.completed(&name, snapshot, chosen.is_ok())?;
            }
        }
        let ChosenData { paths, part, because } = self.choose_data(&name, &snapshot, purpose)?;
        self.fetch(&name, &snapshot, &paths)?;
        let folder = snapshot.repo.snapshot(&snapshot.commit);
        Ok(Found {
            paths: paths.iter().map(|path| folder.join(path)).collect(),
            name: HubName { revision: Some(snapshot.commit), rest: part, ..name },
            because,
            left_out: 0,
        })
    }

    fn choose_data(&self, name: &HubName, snapshot: &Snapshot, purpose: Purpose) -> Result<ChosenData, Failure> {
        let readme = match self.readme(name, snapshot) {
            Err(failure) if failure.cause == Cause::Unreachable => {
                tracing::warn!("{name}: its splits are those that names of files say, because its README.md is not in the cache");
                String::new()
            }
            readme => readme?,
        };
        let cards = card::configs(&readme).unwrap_or_else(|error| {
            tracing::warn!("{name}: the YAML of its README.md is not read: {error}");
            vec![]
        });
        dataset_files::choose(&snapshot.listing, name, &cards, purpose)
    }

    /// The text of README.md; empty if there is none.
    fn readme(&self, name: &HubName, snapshot: &Snapshot) -> Result<String, Failure> {
        if !snapshot.listing.files.contains_key(README) {
            return Ok(String::new());
        }
        self.get(name, snapshot, &[README.to_owned()])?;
        let path = snapshot.repo.snapshot(&snapshot.commit).join(README);
        Ok(String::from_utf8_lossy(&foreign::read(&path, MOST_README)?).into_owned())
    }

    /// The text of the index of a model's shards, if it has shards.
    fn index(&self, name: &HubName, snapshot: &Snapshot) -> Result<Option<String>, Failure> {
        if name.kind != Kind::Model || !model_files::is_sharded(&snapshot.listing, name) {
            return Ok(None);
        }
        let path = model_files::at(name, INDEX);
        self.get(name, snapshot, std::slice::from_ref(&path))?;
        Ok(Some(foreign::read_text(&snapshot.repo.snapshot(&snapshot.commit).join(path), foreign::SETTINGS)?))
    }

    /// The repository at the commit that the cache knows, or that the Hub names.
    fn open(&self, name: &HubName) -> Result<Snapshot, Failure> {
        let repo = CachedRepo::new(&self.client.environment.cache, name);
        let known = repo.commit(name.revision()).filter(|commit| !self.asks_anew || commit == name.revision());
        let Some(commit) = known else { return self.ask(name, name.revision()) };
        let listing = repo.listing(&commit);
        let is_listed = listing.is_some();
        let present = || {
            let file = |path: String| {
                let size = fs::metadata(repo.snapshot(&commit).join(&path)).map_or(0, |there| there.len());
                // Nothing is downloaded by such an entry.
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

    /// The repository with the list of its files, in place of what happens to be here; that has to do where nobody can be asked and
    /// it can be used.
    fn completed(&self, name: &HubName, here: Snapshot, usable: bool) -> Result<Snapshot, Failure> {
        match self.ask(name, &here.commit) {
            Err(failure) if usable && failure.cause != Cause::Final => {
                tracing::warn!("{name}: the cache may lack some of its files: {}", failure.message);
                Ok(here)
            }
            asked => asked,
        }
    }

    /// Asks the Hub for the commit of a revision and its files.
    fn ask(&self, name: &HubName, revision: &str) -> Result<Snapshot, Failure> {
        self.check_online(name, "it is not in the cache")?;
        let (commit, listing) = Listing::ask(&self.client, name, revision).map_err(|failure| self.advised(name, failure))?;
        let repo = CachedRepo::new(&self.client.environment.cache, name);
        repo.set_listing(&commit, &listing)?;
        Ok(Snapshot { repo, commit, listing, is_listed: true })
    }

    /// Makes files of a commit be there, and says what is downloaded.
    fn fetch(&self, name: &HubName, snapshot: &Snapshot, paths: &[String]) -> Result<(), Failure> {
        let missing = self.missing(snapshot, paths);
        let absent: Vec<_> = missing.into_iter().filter(|(_, file)| !snapshot.repo.has_content(file)).collect();
        let start = Instant::now();
        if let Some((first, _)) = absent.first() {
            self.check_online(name, &format!("its {first} is not in the cache"))?;
            let environment = &self.client.environment;
            let bytes: u64 = absent.iter().map(|(_, file)| file.size).sum();
            let license = snapshot.listing.license.as_deref().unwrap_or("not stated");
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

    /// The files that are not here.
    fn missing<'a>(&self, snapshot: &'a Snapshot, paths: &'a [String]) -> BTreeMap<&'a str, &'a RemoteFile> {
        let file = |path: &'a String| Some((path.as_str(), snapshot.listing.files.get(path)?));
        let wanted = paths.iter().filter_map(file);
        wanted.filter(|(path, file)| !snapshot.repo.has(&snapshot.commit, path, file)).collect()
    }

    /// Makes files of a commit be there.
    fn get(&self, name: &HubName, snapshot: &Snapshot, paths: &[String]) -> Result<(), Failure> {
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
        let mut bar = Bar::begin(total, self.client.environment.has_bar);
        for (path, file) in absent {
            // What lies there in another size is no content of this name.
            let content = repo.content(file);
            if content.symlink_metadata().is_ok() && !repo.has_content(file) {
                fs::remove_file(&content).with_context(|| format!("cannot remove {}", content.display()))?;
            }
            let done = download(&self.client, name, commit, (path, file), repo, &mut bar);
            done.map_err(|failure| self.advised(name, failure))?;
            repo.link(commit, path, file)?;
        }
        Ok(())
    }

    /// Refuses to ask the Hub where it must not be asked.
    fn check_online(&self, name: &HubName, why: &str) -> Result<(), Failure> {
        if !self.client.environment.offline {
            return Ok(());
        }
        let message = format!("{} `{name}` cannot be downloaded, because HF_HUB_OFFLINE is set: {why}", name.kind.said());
        Err(self.advised(name, Failure { message, help: String::new(), cause: Cause::Unreachable }))
    }

    /// A failure with the way to get a name on a machine that reaches the Hub, where this one does not.
    fn advised(&self, name: &HubName, failure: Failure) -> Failure {
        if failure.cause == Cause::Final || !failure.help.is_empty() {
            return failure;
        }
        let address = name.address();
        let kind = if name.kind == Kind::Model { "" } else { " --repo-type dataset" };
        let folder = CachedRepo::new(&self.client.environment.cache, name).folder();
        let cache = &self.client.environment.cache;
        let help = format!(
            "on a machine that reaches the Hub, run `trainer fetch {address}` and copy the folder {} of its cache to {}; or run \
             `hf download {}{kind} --local-dir FOLDER` there, copy FOLDER and give its path",
            folder.file_name().unwrap_or_default().to_string_lossy(),
            cache.display(),
            name.repo
        );
        let message = match failure.message.contains(&name.repo) {
            true => failure.message,
            false => format!("{} `{name}` cannot be downloaded: {}", name.kind.said(), failure.message),
        };
        Failure { message, help, ..failure }
    }
}

/// Refuses a download for which the disk has no room.
fn check_space(folder: &Path, bytes: u64) -> Result<(), Failure> {
    let Some(there) = folder.ancestors().find(|path| path.is_dir()) else { return Ok(()) };
    let Ok(disk) = statvfs(there) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= bytes.saturating_add(SPARE) {
        return Ok(());
    }
    let message = format!("the download has {}, and {} are free in {}", size(bytes), size(free), there.display());
    Err(Failure::last(message, "make room there, or name a cache on another disk by HF_HOME"))
}
