//! The record of a run: entries from before, and new ones. Threads of many conversations share it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};

use super::entry::{Entry, RecordBase, RecordedTurn};
use super::file::{EntryFile, read};
use crate::Episode;
use crate::tools::ToolResult;
use burnish_util::interrupt::Interrupt;

/// The beginning of the file name of each process; its rank follows.
const NAME: &str = "conversations-";
const EXTENSION: &str = "record";

/// Options for recording.
#[derive(Clone, Default)]
pub struct RecordingOptions {
    /// True to use earlier entries; false deletes them.
    pub resumes: bool,
    /// True if the run saves its state regularly, so that entries are needed until the next checkpoint. Otherwise only the
    /// entries of one step are kept, for a run that receives a stop request.
    pub keeps: bool,
    /// Recording ends at an interrupt.
    pub interrupt: Interrupt,
}

/// The record of a run. Clones share it.
#[derive(Clone)]
pub struct Recorder(Arc<Mutex<Inner>>);

struct Inner {
    folder: PathBuf,
    rank: usize,
    /// The number of processes.
    size: usize,
    base: RecordBase,
    /// The current step.
    step: Option<u64>,
    /// True if entries are kept over several steps.
    keeps: bool,
    interrupt: Interrupt,
    /// `None` before the first entry of this process.
    file: Option<EntryFile>,
    failed: bool,
    /// Earlier entries, by the names of conversations.
    ended: HashMap<String, Episode>,
    answered: HashMap<String, Vec<RecordedTurn>>,
}

impl Recorder {
    /// Opens the record in the folder of a run, for process `rank` of `size`. Reads the earlier entries of all processes with the
    /// same base, and ignores entries with another base.
    ///
    /// # Errors
    /// A folder that cannot be read, or a file that cannot be removed.
    pub fn open(folder: &Path, (rank, size): (usize, usize), base: RecordBase, how: RecordingOptions) -> Result<Self> {
        let (mut ended, mut answered): (HashMap<_, _>, HashMap<String, Vec<RecordedTurn>>) = Default::default();
        let files = files(folder)?;
        if !how.resumes {
            // Rank 0 also removes the files of ranks that no longer exist.
            let mut ours = files.iter().filter(|(writer, _)| *writer == rank || rank == 0 && *writer >= size);
            ours.try_for_each(|(_, path)| remove(path))?;
        }
        for (_, path) in files.iter().filter(|_| how.resumes) {
            for entry in entries(path, &base)? {
                match entry {
                    Entry::Base(_) => {}
                    Entry::Ended { conversation, episode, .. } => drop(ended.insert(conversation, *episode)),
                    Entry::Answered { conversation, turn, .. } => answered.entry(conversation).or_default().push(turn),
                }
            }
        }
        answered.retain(|conversation, _| !ended.contains_key(conversation));
        if !ended.is_empty() || !answered.is_empty() {
            tracing::info!(
                "reusing {} recorded conversations since the checkpoint, and tool results in {} others",
                ended.len(),
                answered.len()
            );
        } else if how.resumes && !files.is_empty() {
            tracing::info!(
                "ignoring the record {NAME}*.{EXTENSION} in {}: it has other weights, settings, data or files, or is damaged",
                folder.display()
            );
        }
        let folder = folder.to_owned();
        let (keeps, interrupt) = (how.keeps, how.interrupt);
        let inner = Inner { folder, rank, size, base, step: None, keeps, interrupt, file: None, failed: false, ended, answered };
        Ok(Self(Arc::new(Mutex::new(inner))))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a step.
    pub fn begin(&self, step: u64) {
        let mut inner = self.inner();
        if inner.step.is_some_and(|before| before != step) && !inner.keeps {
            inner.file = None;
            // If this fails, the next entry overwrites the file.
            _ = remove(&inner.path());
        }
        inner.step = Some(step);
    }

    /// Returns an earlier finished conversation by its name, once.
    pub fn ended(&self, conversation: &str) -> Option<Episode> {
        self.inner().ended.remove(conversation)
    }

    /// Returns the recorded results of a turn's calls; `None` for a turn that is not recorded. `number` counts the earlier turns with
    /// calls, and `calls` is the checksum of this turn's calls.
    pub(super) fn answers(&self, conversation: &str, number: usize, calls: u32) -> Option<Vec<ToolResult>> {
        let inner = self.inner();
        let turns = inner.answered.get(conversation)?;
        turns.iter().find(|turn| turn.number == number && turn.calls == calls).map(|turn| turn.answers.clone())
    }

    /// Records a finished conversation.
    pub fn record_end(&self, conversation: &str, episode: &Episode) {
        let mut inner = self.inner();
        let (step, conversation) = (inner.step.unwrap_or(0), conversation.to_owned());
        inner.append(&Entry::Ended { step, conversation, episode: Box::new(episode.clone()) });
    }

    /// Records the results of a turn's calls.
    pub(super) fn record_answers(&self, conversation: &str, turn: RecordedTurn) {
        let mut inner = self.inner();
        let (step, conversation) = (inner.step.unwrap_or(0), conversation.to_owned());
        inner.append(&Entry::Answered { step, conversation, turn });
    }

    /// Deletes the entries up to `step`, which the checkpoint after `step` contains. Later entries have these weights as their
    /// base.
    ///
    /// # Errors
    /// A file that cannot be replaced.
    pub fn saved(&self, step: u64, weights: String) -> Result<()> {
        let mut inner = self.inner();
        let mut later = entries(&inner.path(), &inner.base)?;
        later.retain(|entry| entry.step() > Some(step));
        (inner.base.step, inner.base.weights) = (step + 1, weights);
        (inner.file, inner.failed) = (None, false);
        inner.ended.clear();
        inner.answered.clear();
        let mut others = files(&inner.folder)?.into_iter().filter(|(rank, _)| inner.rank == 0 && *rank >= inner.size);
        others.try_for_each(|(_, path)| remove(&path))?;
        match later.is_empty() {
            true => remove(&inner.path()),
            false => inner.create(later),
        }
    }
}

impl Inner {
    fn path(&self) -> PathBuf {
        self.folder.join(format!("{NAME}{}.{EXTENSION}", self.rank))
    }

    /// Rewrites the file with these entries.
    fn create(&mut self, later: Vec<Entry>) -> Result<()> {
        let entries: Vec<Entry> = [Entry::Base(self.base.clone())].into_iter().chain(later).collect();
        self.file = Some(EntryFile::create(&self.path(), &entries)?);
        Ok(())
    }

    fn append(&mut self, entry: &Entry) {
        // A signal that stops the run may also stop the processes of its tools, and their failures must not be recorded as
        // results.
        if self.failed || self.interrupt.is_requested() {
            return;
        }
        let mut write = || {
            if self.file.is_none() {
                // Keeps the complete entries of an existing file.
                self.create(entries(&self.path(), &self.base)?)?;
            }
            self.file.as_mut().map_or(Ok(()), |file| file.append(entry))
        };
        if let Err(error) = write() {
            tracing::warn!("recording of conversations ended, so a resumed run calls their tools again: {error:#}");
            self.failed = true;
        }
    }
}

/// Returns the entries of a file, without its base; none if its base differs.
fn entries(path: &Path, base: &RecordBase) -> Result<Vec<Entry>> {
    let mut entries = read(path)?.into_iter();
    match entries.next() {
        Some(Entry::Base(recorded)) if recorded == *base => Ok(entries.collect()),
        _ => Ok(Vec::new()),
    }
}

/// Returns the record files in the folder of a run, each with its rank.
fn files(folder: &Path) -> Result<Vec<(usize, PathBuf)>> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let rank = name.strip_prefix(NAME).and_then(|name| name.strip_suffix(EXTENSION)?.strip_suffix('.')?.parse().ok());
        files.extend(rank.map(|rank| (rank, path)));
    }
    files.sort();
    Ok(files)
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn base((step, weights): (u64, &str)) -> RecordBase {
        RecordBase { step, weights: weights.to_owned(), settings: String::new(), version: String::new() }
    }

    fn turn(text: &str) -> RecordedTurn {
        let answer = ToolResult { text: text.to_owned(), reward: None, failure: None, seconds: 0.0, extra: Map::new() };
        RecordedTurn { number: 0, calls: 1, answers: vec![answer] }
    }

    #[test]
    fn what_is_recorded_counts_until_the_state_after_its_step_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let open = |rank: (usize, usize), from: (u64, &str), keeps: bool| {
            let how = RecordingOptions { resumes: true, keeps, interrupt: Interrupt::default() };
            Recorder::open(folder.path(), rank, base(from), how).unwrap()
        };
        let knows = |recorder: &Recorder, name: &str| recorder.answers(name, 0, 1).is_some();
        let record = |recorder: &Recorder, step: u64, name: &str| {
            recorder.begin(step);
            recorder.record_answers(name, turn(name));
        };
        let first = open((0, 2), (1, "a"), true);
        record(&first, 1, "one");
        record(&open((1, 2), (1, "a"), true), 1, "other");
        record(&first, 2, "two");
        // A later run of any size reads the entries of all ranks; a run with other weights reads none.
        let alone = open((0, 1), (1, "a"), true);
        assert!(["one", "two", "other"].iter().all(|name| knows(&alone, name)));
        assert!(alone.answers("one", 0, 2).is_none() && alone.answers("one", 1, 1).is_none());
        assert!(!knows(&open((0, 1), (2, "b"), true), "one"));
        // An unfinished step is kept with the saved weights; the file of a removed rank is not.
        alone.saved(1, "b".to_owned()).unwrap();
        let resumed = open((0, 1), (2, "b"), true);
        assert!(knows(&resumed, "two") && !knows(&resumed, "one") && !knows(&resumed, "other"));
        record(&resumed, 2, "more");
        let again = open((0, 1), (2, "b"), false);
        assert!(knows(&again, "two") && knows(&again, "more"));
        // Without checkpoints, the record has only one step.
        record(&again, 2, "last");
        record(&again, 3, "three");
        let last = open((0, 1), (2, "b"), true);
        assert!(knows(&last, "three") && !knows(&last, "last") && !knows(&last, "two"));
        Recorder::open(folder.path(), (0, 1), base((2, "b")), RecordingOptions::default()).unwrap();
        assert!(!knows(&open((0, 1), (2, "b"), true), "three"), "a run that starts over asks again");
        record(&last, 3, "three");
        last.saved(3, "c".to_owned()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
