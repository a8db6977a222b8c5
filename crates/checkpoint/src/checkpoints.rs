//! Checkpoints of a run in one directory: saved, listed, verified, deleted.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::folder::{BEST_FILE, STEP_PREFIX, TRACKER_FILE, step_of};
use super::manifest::Manifest;
use burnish_util::foreign;
use burnish_util::fs::{AtomicDir, remove_dir, sweep};
use burnish_util::lock::{FolderLock, lock};
use burnish_util::no_follow;

/// Checkpoints of one training run (and of the earlier runs it resumed from) in one directory.
#[derive(Debug)]
pub struct Checkpoints {
    pub(super) dir: PathBuf,
    max_to_keep: Option<usize>,
    /// Steps of checkpoints that turned out to be damaged; they do not count towards the number to keep.
    pub(super) damaged: BTreeSet<u64>,
    /// Lock that keeps other processes out.
    _lock: Option<FolderLock>,
}

impl Checkpoints {
    /// Opens `dir` (`trainer.default_local_dir`) exclusively, creates it if needed, and removes half-written files of a killed
    /// run. `max_to_keep` is the number of checkpoints to keep, as in verl; `None` and 0 keep all.
    pub fn new(dir: impl Into<PathBuf>, max_to_keep: Option<usize>) -> Result<Self> {
        let dir = dir.into();
        fs::create_dir_all(&dir).with_context(|| format!("cannot create the checkpoint directory {}", dir.display()))?;
        let lock = lock(&dir)?;
        sweep(&dir)?;
        Ok(Self { max_to_keep: max_to_keep.filter(|keep| *keep > 0), _lock: lock, ..Self::read_only(dir) })
    }

    /// Opens `dir` without creating or removing anything, and without a lock.
    pub fn read_only(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), max_to_keep: None, damaged: BTreeSet::new(), _lock: None }
    }

    /// Returns the directory of all checkpoints.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of the checkpoint of `step`, which need not exist.
    pub fn path(&self, step: u64) -> PathBuf {
        self.dir.join(format!("{STEP_PREFIX}{step}"))
    }

    /// Returns true if `later` was saved after the present checkpoint of `step`. Another run may have resumed earlier and
    /// replaced that checkpoint.
    pub fn is_followed_by(&self, step: u64, later: &Path) -> bool {
        let sequence = |dir: &Path| Manifest::read(dir).ok().map(|manifest| manifest.sequence);
        sequence(&self.path(step)).zip(sequence(later)).is_some_and(|(earlier, later)| earlier <= later)
    }

    /// Saves a checkpoint: `write` fills a staging directory, which then gets its manifest and its final name. It replaces an
    /// earlier checkpoint of the same step. Then the files that name the best and the last checkpoint are updated, and old
    /// checkpoints except the best are deleted. If `write` fails, nothing has changed. `alive` is called from time to time after
    /// `write`.
    pub fn save(
        &mut self,
        step: u64,
        best: Option<u64>,
        alive: &dyn Fn(),
        write: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let target = self.path(step);
        let before = self.newest_first()?;
        let earlier = self.named_best();
        let save = || {
            let staged = AtomicDir::stage_own(&target)?;
            write(staged.path())?;
            let sequence = before.first().map_or(1, |newest| newest.manifest.next_sequence());
            Manifest::describe(staged.path(), step, sequence, alive)?.write(staged.path())?;
            staged.commit()?;
            self.release(step)?;
            self.name_best(best)?;
            no_follow::write(&self.dir.join(TRACKER_FILE), step.to_string().as_bytes())
        };
        save()
            .map_err(|error| match before.first().filter(|_| is_full(&error)) {
                Some(newest) => {
                    error.context(format!("a checkpoint takes about {} MiB", newest.manifest.bytes().div_ceil(1 << 20)))
                }
                None => error,
            })
            .with_context(|| format!("cannot save the checkpoint of step {step}"))?;
        let earlier = earlier.filter(|earlier| best != Some(*earlier) && *earlier != step);
        self.delete_old(step, best)?;
        if let (Some(earlier), Some(best)) = (earlier.filter(|earlier| !self.path(*earlier).is_dir()), best) {
            tracing::info!("step {best} is now the best; the checkpoint of step {earlier}, the previous best, is deleted");
        }
        Ok(target)
    }

    /// Writes this step into [`BEST_FILE`], or removes the file.
    pub(crate) fn name_best(&self, best: Option<u64>) -> Result<()> {
        let path = self.dir.join(BEST_FILE);
        let named = foreign::read_text(&path, foreign::WORD).ok();
        match best.map(|step| step.to_string()) {
            best if best == named => Ok(()),
            Some(step) => no_follow::write(&path, step.as_bytes()),
            None => fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display())),
        }
    }

    /// Deletes all checkpoints except the `max_to_keep` undamaged ones saved last (of any step), the best, and those
    /// [kept](Self::keep_best). Directories without a manifest are never deleted.
    fn delete_old(&mut self, just_saved: u64, best: Option<u64>) -> Result<()> {
        self.damaged.remove(&just_saved);
        let Some(keep) = self.max_to_keep else { return Ok(()) };
        let is_whole =
            |saved: &SavedCheckpoint| !self.damaged.contains(&saved.step) && saved.manifest.check_sizes(&saved.dir).is_ok();
        let (whole, damaged): (Vec<SavedCheckpoint>, Vec<SavedCheckpoint>) = self.newest_first()?.into_iter().partition(is_whole);
        let held = self.kept_steps();
        let kept = |step: u64| step == just_saved || Some(step) == best || held.contains(&step);
        for old in whole.into_iter().skip(keep).chain(damaged).filter(|old| !kept(old.step)) {
            remove_dir(&old.dir)?;
        }
        Ok(())
    }

    /// Deletes the checkpoint of `step`, if it is there and not [kept](Self::keep_best).
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn delete(&self, step: u64) -> Result<()> {
        let dir = self.path(step);
        if self.kept_steps().contains(&step) || Manifest::read(&dir).is_err() { Ok(()) } else { remove_dir(&dir) }
    }

    /// Returns true if the checkpoint of `step` exists, and its files have their sizes.
    pub(super) fn is_whole(&self, step: u64) -> bool {
        let dir = self.path(step);
        Manifest::read(&dir).is_ok_and(|manifest| manifest.check_sizes(&dir).is_ok())
    }

    /// Returns all checkpoints with a readable manifest, the one saved last first.
    pub(super) fn newest_first(&self) -> Result<Vec<SavedCheckpoint>> {
        let mut found = Vec::new();
        for (step, dir) in self.folders()? {
            if let Ok(manifest) = Manifest::read(&dir) {
                found.push(SavedCheckpoint { step, dir, manifest });
            }
        }
        found.sort_by_key(|saved| std::cmp::Reverse((saved.manifest.sequence, saved.step)));
        Ok(found)
    }

    /// Lists the checkpoints, the highest step first. Only manifests are read.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> Result<Vec<CheckpointEntry>> {
        let listed = |(step, dir): (u64, PathBuf)| {
            let manifest = Manifest::read(&dir).and_then(|manifest| manifest.check_sizes(&dir).map(|()| manifest));
            CheckpointEntry { step, bytes: manifest.ok().map(|manifest| manifest.bytes()), dir }
        };
        Ok(self.folders()?.into_iter().map(listed).collect())
    }

    /// Returns all folders with the name of a checkpoint, the highest step first.
    pub(super) fn folders(&self) -> Result<Vec<(u64, PathBuf)>> {
        let cannot_read = || format!("cannot read {}", self.dir.display());
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(cannot_read)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let dir = entry.with_context(cannot_read)?.path();
            found.extend(step_of(&dir).ok().map(|step| (step, dir)));
        }
        found.sort_by_key(|(step, _)| std::cmp::Reverse(*step));
        Ok(found)
    }
}

/// Returns true if the error means that a disk, or a user's quota on it, is full.
fn is_full(error: &anyhow::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| matches!(cause.kind(), StorageFull | QuotaExceeded | FileTooLarge))
}

/// A checkpoint with its manifest.
#[derive(Debug)]
pub(super) struct SavedCheckpoint {
    pub(super) step: u64,
    pub(super) dir: PathBuf,
    pub(super) manifest: Manifest,
}

/// A folder with the name of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointEntry {
    pub step: u64,
    pub dir: PathBuf,
    /// Total size of its files; `None` if some are missing or truncated.
    pub bytes: Option<u64>,
}

/// Returns a hint for a user who gave a run's folder as a checkpoint: the checkpoints in it, the highest step first. `None`
/// without checkpoints.
pub(super) fn inside(path: &Path) -> Option<String> {
    let saved = Checkpoints::read_only(path).list().ok().filter(|saved| !saved.is_empty())?;
    let named =
        |file: &str| foreign::read_text(&path.join(file), foreign::WORD).ok().and_then(|step| step.trim().parse::<u64>().ok());
    let (latest, best) = (named(TRACKER_FILE), named(BEST_FILE));
    let name = |saved: &CheckpointEntry| {
        let notes = [
            (saved.bytes.is_none(), "damaged"),
            (latest == Some(saved.step), "the latest"),
            (best == Some(saved.step), "the best"),
        ];
        let notes: Vec<&str> = notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        format!("{}{notes}", saved.dir.display())
    };
    let mut names: Vec<String> = saved.iter().take(MAX_NAMED).map(name).collect();
    names.extend((saved.len() > MAX_NAMED).then(|| format!("{} more", saved.len() - MAX_NAMED)));
    Some(format!("{} is the folder of a run; its checkpoints are {}", path.display(), names.join(", ")))
}

/// Returns the folder of the best checkpoint of a run, by `trainer.metric_for_best_model`.
///
/// # Errors
/// If the run's folder does not name a best checkpoint.
pub fn best(run: &Path) -> Result<PathBuf> {
    let step = foreign::read_text(&run.join(BEST_FILE), foreign::WORD).with_context(|| {
        let when = "a run names it if it sets trainer.metric_for_best_model, once a step is both validated and saved";
        format!("{} names no best checkpoint: {when}", run.display())
    })?;
    Ok(run.join(format!("{STEP_PREFIX}{}", step.trim())))
}

/// Largest number of checkpoints that [`inside`] names.
const MAX_NAMED: usize = 8;

/// Refuses to write into a checkpoint, which must contain exactly the files in its manifest.
///
/// # Errors
/// If `path` is a checkpoint or is inside one.
pub fn refuse_inside(path: &Path) -> Result<()> {
    let whole = std::path::absolute(path).with_context(|| format!("cannot make {} absolute", path.display()))?;
    // Resolves links in the part of the path that exists.
    let real = whole.ancestors().find_map(|above| {
        let rest = whole.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    });
    for path in [Some(&whole), real.as_ref()].into_iter().flatten() {
        if let Some(checkpoint) = path.ancestors().find(|above| step_of(above).is_ok() && Manifest::read(above).is_ok()) {
            bail!("{} is in the checkpoint {}: choose a folder outside of it", path.display(), checkpoint.display());
        }
    }
    Ok(())
}

/// Refuses a checkpoint with missing or truncated files; the error names the file. Reads only the manifest.
///
/// # Errors
/// If a file is missing or has another size.
pub fn verify_sizes(dir: &Path) -> Result<()> {
    Manifest::read(dir)?.check_sizes(dir)
}

/// Refuses a part of a checkpoint that is truncated or altered. `part`: its folder, which may be `dir` itself. Reads the model,
/// and no state of an optimizer.
///
/// # Errors
/// If a file is damaged, with its name.
pub fn verify_part(dir: &Path, part: &Path) -> Result<()> {
    let mut manifest = Manifest::read(dir)?;
    let part = part.strip_prefix(dir).unwrap_or(Path::new(""));
    manifest.files.retain(|file| Path::new(&file.path).starts_with(part) && !file.path.ends_with("optim.safetensors"));
    manifest.check_sizes(dir)?;
    manifest.check_contents(dir)
}

/// Refuses a checkpoint that is truncated or altered; the error names the file. Reads every byte.
pub fn verify(dir: &Path) -> Result<Manifest> {
    let manifest = Manifest::read(dir)?;
    manifest.check_sizes(dir)?;
    manifest.check_contents(dir)?;
    Ok(manifest)
}
