//! The record of a run: what was recorded before, and what is recorded now. Threads of many conversations share it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};

use super::entry::{Base, Entry, Turn};
use super::file::{EntryFile, read};
use crate::Episode;
use crate::tools::Answer;
use burnish_util::interrupt::Interrupt;

/// The name of the file of each process begins with this; its rank follows.
const NAME: &str = "conversations-";
const EXTENSION: &str = "record";

/// What is recorded, and what is taken from the record.
#[derive(Clone, Default)]
pub struct Recording {
    /// True to take what was recorded before; false forgets it.
    pub resumes: bool,
    /// True if the state is saved now and then, so that entries count until the next time. Else those of one step are kept, for a
    /// run that is asked to stop.
    pub keeps: bool,
    /// Nothing is recorded any more once it was asked.
    pub interrupt: Interrupt,
}

/// The record of a run. Clones are the same record.
#[derive(Clone)]
pub struct Recorder(Arc<Mutex<Inner>>);

struct Inner {
    folder: PathBuf,
    rank: usize,
    /// The number of processes.
    size: usize,
    base: Base,
    /// The step that is being made.
    step: Option<u64>,
    /// True if entries are kept over steps.
    keeps: bool,
    interrupt: Interrupt,
    /// `None` before the first entry of this process.
    file: Option<EntryFile>,
    failed: bool,
    /// What was recorded before this process, by the names of conversations.
    ended: HashMap<String, Episode>,
    answered: HashMap<String, Vec<Turn>>,
}

impl Recorder {
    /// Opens the record in the folder of a run, of process `rank` of `size`. What was recorded there from the same base is known
    /// then, by however many processes; what is of another base counts for nothing.
    ///
    /// # Errors
    /// A folder that cannot be read, or a file that cannot be removed.
    pub fn open(folder: &Path, (rank, size): (usize, usize), base: Base, how: Recording) -> Result<Self> {
        let (mut ended, mut answered): (HashMap<_, _>, HashMap<String, Vec<Turn>>) = Default::default();
        let files = files(folder)?;
        if !how.resumes {
            // Those of processes that are no more, too.
            let mut ours = files.iter().filter(|(own, _)| *own == rank || rank == 0 && *own >= size);
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
                "{} conversations since the checkpoint are recorded and not led again, and answers of tools in {} others",
                ended.len(),
                answered.len()
            );
        } else if how.resumes && !files.is_empty() {
            tracing::info!(
                "the record {NAME}*.{EXTENSION} in {} counts for nothing: it is of other weights, settings, data or files, or torn",
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
            // A file that stays is written anew with the next entry.
            _ = remove(&inner.path());
        }
        inner.step = Some(step);
    }

    /// The conversation of this name, if it has ended before; it is given once.
    pub fn ended(&self, conversation: &str) -> Option<Episode> {
        self.inner().ended.remove(conversation)
    }

    /// The answers to the calls of a turn of a conversation, if they came before: `number` turns with such calls came before it,
    /// and `calls` is the checksum of its calls.
    pub(super) fn answers(&self, conversation: &str, number: usize, calls: u32) -> Option<Vec<Answer>> {
        let inner = self.inner();
        let turns = inner.answered.get(conversation)?;
        turns.iter().find(|turn| turn.number == number && turn.calls == calls).map(|turn| turn.answers.clone())
    }

    /// Records a conversation that has ended.
    pub fn record_end(&self, conversation: &str, episode: &Episode) {
        let mut inner = self.inner();
        let (step, conversation) = (inner.step.unwrap_or(0), conversation.to_owned());
        inner.append(&Entry::Ended { step, conversation, episode: Box::new(episode.clone()) });
    }

    /// Records the answers to the calls of a turn.
    pub(super) fn record_answers(&self, conversation: &str, turn: Turn) {
        let mut inner = self.inner();
        let (step, conversation) = (inner.step.unwrap_or(0), conversation.to_owned());
        inner.append(&Entry::Answered { step, conversation, turn });
    }

    /// Forgets what a checkpoint of the state after `step` has in it: what was recorded until then. What comes later is of these
    /// weights.
    ///
    /// # Errors
    /// A file that cannot be replaced.
    pub fn saved(&self, step: u64, weights: String) -> Result<()> {
        let mut inner = self.inner();
        let mut kept = entries(&inner.path(), &inner.base)?;
        kept.retain(|entry| entry.step() > Some(step));
        (inner.base.step, inner.base.weights) = (step + 1, weights);
        (inner.file, inner.failed) = (None, false);
        inner.ended.clear();
        inner.answered.clear();
        let mut others = files(&inner.folder)?.into_iter().filter(|(rank, _)| inner.rank == 0 && *rank >= inner.size);
        others.try_for_each(|(_, path)| remove(&path))?;
        match kept.is_empty() {
            true => remove(&inner.path()),
            false => inner.create(kept),
        }
    }
}

impl Inner {
    fn path(&self) -> PathBuf {
        self.folder.join(format!("{NAME}{}.{EXTENSION}", self.rank))
    }

    /// Writes the file anew, with these entries.
    fn create(&mut self, kept: Vec<Entry>) -> Result<()> {
        let entries: Vec<Entry> = [Entry::Base(self.base.clone())].into_iter().chain(kept).collect();
        self.file = Some(EntryFile::create(&self.path(), &entries)?);
        Ok(())
    }

    fn append(&mut self, entry: &Entry) {
        // A signal that stops the run may stop the processes of its tools too, and their failures are no answers to keep.
        if self.failed || self.interrupt.asked() {
            return;
        }
        let mut write = || {
            if self.file.is_none() {
                // What is there is kept, without what a kill has torn.
                self.create(entries(&self.path(), &self.base)?)?;
            }
            self.file.as_mut().map_or(Ok(()), |file| file.append(entry))
        };
        if let Err(error) = write() {
            tracing::warn!("conversations are not recorded any more, so a resumed run asks their tools again: {error:#}");
            self.failed = true;
        }
    }
}

/// The entries of a file, without its base; none if it has another one.
fn entries(path: &Path, base: &Base) -> Result<Vec<Entry>> {
    let mut entries = read(path)?.into_iter();
    match entries.next() {
        Some(Entry::Base(own)) if own == *base => Ok(entries.collect()),
        _ => Ok(Vec::new()),
    }
}

/// The files in the folder of a run, each with the rank of its process.
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

    fn base((step, weights): (u64, &str)) -> Base {
        Base { step, weights: weights.to_owned(), settings: String::new(), version: String::new() }
    }

    fn turn(text: &str) -> Turn {
        let answer = Answer { text: text.to_owned(), reward: None, trouble: None, seconds: 0.0, extra: Map::new() };
        Turn { number: 0, calls: 1, answers: vec![answer] }
    }

    #[test]
    fn what_is_recorded_counts_until_the_state_after_its_step_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let open = |rank: (usize, usize), from: (u64, &str), keeps: bool| {
            let how = Recording { resumes: true, keeps, interrupt: Interrupt::default() };
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
        // Whoever comes then, alone or not, knows what all recorded; from other weights it is nothing.
        let alone = open((0, 1), (1, "a"), true);
        assert!(["one", "two", "other"].iter().all(|name| knows(&alone, name)));
        assert!(alone.answers("one", 0, 2).is_none() && alone.answers("one", 1, 1).is_none());
        assert!(!knows(&open((0, 1), (2, "b"), true), "one"));
        // A step that was abandoned is kept, with the weights that are saved; the file of a process that is gone is not.
        alone.saved(1, "b".to_owned()).unwrap();
        let resumed = open((0, 1), (2, "b"), true);
        assert!(knows(&resumed, "two") && !knows(&resumed, "one") && !knows(&resumed, "other"));
        record(&resumed, 2, "more");
        let again = open((0, 1), (2, "b"), false);
        assert!(knows(&again, "two") && knows(&again, "more"));
        // Where nothing is saved, the record is that of one step.
        record(&again, 2, "last");
        record(&again, 3, "three");
        let last = open((0, 1), (2, "b"), true);
        assert!(knows(&last, "three") && !knows(&last, "last") && !knows(&last, "two"));
        Recorder::open(folder.path(), (0, 1), base((2, "b")), Recording::default()).unwrap();
        assert!(!knows(&open((0, 1), (2, "b"), true), "three"), "a run that starts anew asks again");
        record(&last, 3, "three");
        last.saved(3, "c".to_owned()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
