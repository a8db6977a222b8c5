//! Weights & Biases: the client's own offline format, written natively. The run is uploaded by `wandb sync`, or during training
//! by a child process of the client.
//!
//! A run is one file that only grows, so a kill loses at most the record being written. A resumed run cuts the file after the
//! last row up to its checkpoint and continues it under the same id, so that `wandb sync` uploads every step once. Rows that were
//! uploaded before that cannot be withdrawn: the child process sends the whole file again, under the same steps, after the lines
//! that the server has. As with every repeated upload of the client, the server keeps one row per step. On the server, rows after
//! the checkpoint remain until the resumed run reaches their steps.

mod live;
mod log;
mod records;
mod settings;
mod system;
mod tables;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Error, Result};

use super::{Ending, Entry, Exit, Metrics, Session, Table, Tracker};
use crate::util::protobuf::{Message, bytes_of};
use crate::util::shell::word;
use crate::util::strftime::strftime;
use live::Live;
use log::Log;
use records::{About, kind};
use settings::{Mode, Settings};
use system::Sampler;

pub(super) const TRACKER: Entry = Entry {
    name: "wandb",
    doc: "A Weights & Biases run in $WANDB_DIR, else <default_local_dir>, in wandb/offline-run-<time>-<id>, for `wandb sync`; uploaded while it \
          goes on where the wandb client is installed and WANDB_MODE=online, or unset and a key is known. Also read: WANDB_ENTITY, \
          WANDB_RUN_GROUP, WANDB_JOB_TYPE, WANDB_TAGS, WANDB_NOTES, WANDB_RUN_ID, WANDB_RESUME; a resumed run continues its own",
    reads: &["trainer.wandb_proxy"],
    open: |session| {
        let settings = Settings::from_environment(session)?;
        if settings.mode == Mode::Disabled {
            tracing::info!("W&B: WANDB_MODE=disabled, so nothing is written");
            return Ok(Box::new(Disabled));
        }
        Ok(Box::new(Wandb::open(session, &settings)?))
    },
};

/// The longest wait for the upload at the end of a run.
const UPLOAD: Duration = Duration::from_secs(30);
/// The exit codes by which the client distinguishes runs ended by Ctrl-C from runs that failed.
const INTERRUPTED: u64 = 255;
const FAILED: u64 = 1;

struct Disabled;

impl Tracker for Disabled {
    fn log(&mut self, _: u64, _: &Metrics) -> Result<()> {
        Ok(())
    }

    fn table(&mut self, _: u64, _: &Table) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &Ending) -> Result<()> {
        Ok(())
    }
}

/// The log of a run, shared with the thread that samples the machine's load.
struct Writer {
    log: Log,
    /// The number of records in the log.
    count: u64,
}

impl Writer {
    fn write(&mut self, bodies: &[(u64, &[u8])]) -> Result<()> {
        let records: Vec<Vec<u8>> =
            (self.count + 1..).zip(bodies).map(|(number, (kind, body))| records::record(number, *kind, body)).collect();
        self.log.append(records.iter().map(Vec::as_slice))?;
        self.count += records.len() as u64;
        Ok(())
    }
}

struct Wandb {
    writer: Arc<Mutex<Writer>>,
    folder: PathBuf,
    sampler: Option<Sampler>,
    live: Option<Live>,
    opened: Instant,
    /// The time that the run took before it was resumed.
    earlier: Duration,
    /// The step and the items of tables that are waiting for the metrics of their step.
    tables: Option<(u64, Message)>,
}

impl Wandb {
    fn open(session: &Session, settings: &Settings) -> Result<Self> {
        let (folder, writer, earlier) = match resumed(session, settings)? {
            Some(resumed) => resumed,
            None => start(session, settings)?,
        };
        let writer = Arc::new(Mutex::new(writer));
        let shared = Arc::clone(&writer);
        let sampler = Sampler::start(move |values| {
            let mut writer = lock(&shared);
            writer.write(&[(kind::STATS, &records::stats(SystemTime::now(), values))])?;
            let file = writer.log.file();
            drop(writer);
            Ok(file.sync_data()?)
        })?;
        let live = start_upload(session, settings.mode, &folder);
        Ok(Self { writer, folder, sampler: Some(sampler), live, opened: Instant::now(), earlier, tables: None })
    }

    fn runtime(&self) -> Duration {
        self.earlier + self.opened.elapsed()
    }

    /// Writes a row of history and, with the same content, the summary.
    fn row(&self, step: u64, mut items: Message) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        records::item(&mut items, &["_timestamp"], &records::number(now.as_secs_f64()));
        records::item(&mut items, &["_runtime"], &records::number(self.runtime().as_secs_f64()));
        records::item(&mut items, &["_step"], &step.to_string());
        let items = items.into_bytes();
        let row = records::history(items.clone(), step);
        let written = lock(&self.writer).write(&[(kind::SUMMARY, &items), (kind::HISTORY, &row)]);
        written.with_context(|| format!("the row of step {step} is lost"))
    }

    /// Writes the waiting tables as a row of their own, because the metrics of their step never came.
    fn flush_tables(&mut self) -> Result<()> {
        self.tables.take().map_or(Ok(()), |(step, items)| self.row(step, items))
    }

    fn check_upload(&mut self) {
        if let Some(Err(error)) = self.live.as_mut().map(Live::check) {
            tracing::warn!("W&B: the upload stopped, the run is still written: {error:#}");
            self.live = None;
        }
    }
}

impl Tracker for Wandb {
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        self.check_upload();
        if self.tables.as_ref().is_some_and(|(of, _)| *of != step) {
            self.flush_tables()?;
        }
        let mut items = self.tables.take().map_or_else(Message::default, |(_, items)| items);
        metrics.iter().for_each(|(name, value)| records::item(&mut items, &[name], &records::number(value)));
        self.row(step, items)
    }

    fn table(&mut self, step: u64, table: &Table) -> Result<()> {
        if self.tables.as_ref().is_some_and(|(of, _)| *of != step) {
            self.flush_tables()?;
        }
        let lost = || format!("the table '{}' of step {step} is lost", table.name);
        let (path, size) = tables::write(&self.folder.join("files"), step, table).with_context(lost)?;
        lock(&self.writer).write(&[(kind::FILES, &records::file(&path))]).with_context(lost)?;
        let (_, items) = self.tables.get_or_insert_with(|| (step, Message::default()));
        tables::items(items, table, &path, size)
    }

    fn finish(&mut self, ending: &Ending) -> Result<()> {
        let flushed = self.flush_tables();
        if let Some(sampler) = self.sampler.take() {
            sampler.stop();
        }
        let runtime = self.runtime();
        let mut summary = Message::default();
        records::item(&mut summary, &["_wandb", "runtime"], &runtime.as_secs().to_string());
        let summary = summary.into_bytes();
        let code = match ending.exit {
            Exit::Finished => 0,
            Exit::Interrupted => INTERRUPTED,
            Exit::Failed => FAILED,
        };
        let exit_record = records::exit(code, runtime);
        let mut bodies: Vec<(u64, &[u8])> = vec![(kind::SUMMARY, &summary), (kind::EXIT, &exit_record)];
        if ending.exit == Exit::Interrupted {
            // The record of a preempted machine, by which the server knows that the run will be resumed.
            bodies.insert(0, (kind::PREEMPTING, &[]));
        }
        let mut writer = lock(&self.writer);
        let written =
            writer.write(&bodies).and_then(|()| Ok(writer.log.file().sync_data()?)).context("the end of the run is lost");
        drop(writer);
        let command = format!("wandb sync {}", word(&self.folder));
        match self.live.take().map(|live| live.finish(UPLOAD, ending)) {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::warn!("W&B: the upload is incomplete: {error:#}; finish it by: {command}"),
            None => tracing::info!("W&B: upload the run by: {command}"),
        }
        flushed.and(written)
    }
}

fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a folder for the run and writes the first records.
fn start(session: &Session, settings: &Settings) -> Result<(PathBuf, Writer, Duration)> {
    let id = settings.id.as_deref().unwrap_or(&session.run_id);
    let seconds = session.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = strftime("%Y%m%d_%H%M%S", seconds as i64, 0).map_err(Error::msg)?;
    let name = format!("offline-run-{time}-{id}");
    let parent = settings.root.join("wandb");
    let folder = std::path::absolute(parent.join(&name)).unwrap_or_else(|_| parent.join(&name));
    for part in ["files", "logs"] {
        fs::create_dir_all(folder.join(part)).with_context(|| format!("cannot create {}", folder.join(part).display()))?;
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let about = About {
        id,
        entity: &settings.entity,
        project: &session.project,
        name: &session.experiment,
        group: &settings.group,
        job_type: &settings.job_type,
        notes: &settings.notes,
        tags: &settings.tags,
        host: host.trim(),
    };
    let run = records::run(&about, &session.config, session.started)?;
    let environment = records::environment(id, host.trim(), session.started);
    let mut writer = Writer { log: Log::create(&folder.join(file_name(id)))?, count: 0 };
    writer.write(&[(kind::HEADER, &records::header()), (kind::RUN, &run), (kind::ENVIRONMENT, &environment)])?;
    session.remember("wandb", &name)?;
    // The client makes this link too; it is only a convenience, so errors are ignored.
    let latest = parent.join("latest-run");
    let _ = fs::remove_file(&latest).and(symlink(&name, &latest)).or_else(|_| symlink(&name, &latest));
    Ok((folder, writer, Duration::ZERO))
}

/// Opens the log that an earlier process of the run began, and removes what the resumed run will write again.
fn resumed(session: &Session, settings: &Settings) -> Result<Option<(PathBuf, Writer, Duration)>> {
    let (Some(last), Some(name)) = (session.resumed_step, session.remembered("wandb")) else { return Ok(None) };
    // The format is offline-run-YYYYMMDD_HHMMSS-ID.
    let Some(id) = name.splitn(4, '-').nth(3) else { return Ok(None) };
    if settings.id.as_deref().is_some_and(|wanted| wanted != id) {
        tracing::warn!("W&B: WANDB_RUN_ID is not the run's '{id}': a new run is begun, without the rows up to step {last}");
        return Ok(None);
    }
    let folder = settings.root.join("wandb").join(&name);
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let path = folder.join(file_name(id));
    let Some(kept) = fs::read(&path).ok().and_then(|file| Kept::of(&file, last)) else {
        tracing::warn!("W&B: {} is not there any more: a new run is begun, without the rows up to step {last}", path.display());
        return Ok(None);
    };
    if kept.last_step != Some(last) && last > 0 {
        tracing::warn!("W&B: {} has no row of step {last}, from which the run continues", path.display());
    }
    let mut writer = Writer { log: Log::resume(&path, kept.end)?, count: kept.records };
    writer.write(&[(kind::CONFIG, &records::config(&session.config)?)])?;
    // The client's mark that everything is uploaded; if it stayed, the client would skip the run.
    let _ = fs::remove_file(path.with_extension("wandb.synced"));
    Ok(Some((folder, writer, kept.runtime)))
}

/// The part of a log that a resumed run keeps.
#[derive(Debug, PartialEq)]
struct Kept {
    end: usize,
    records: u64,
    last_step: Option<u64>,
    runtime: Duration,
}

impl Kept {
    /// Keeps everything up to the last row whose step is at most `last`; `None` if not even the run's own record is complete.
    fn of(file: &[u8], last: u64) -> Option<Self> {
        let mut kept = None;
        for (count, (end, record)) in (1..).zip(log::records(file)) {
            if let Some(row) = bytes_of(&record, kind::HISTORY) {
                let step = records::step_of(row)?;
                if step > last {
                    break;
                }
                let runtime = records::value_of(row, "_runtime").and_then(|seconds| seconds.parse().ok());
                let runtime = runtime.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_default();
                kept = kept.map(|_| Self { end, records: count, last_step: Some(step), runtime });
            } else if bytes_of(&record, kind::RUN).is_some() {
                kept = Some(Self { end, records: count, last_step: None, runtime: Duration::ZERO });
            } else if bytes_of(&record, kind::ENVIRONMENT).is_some() {
                kept = kept.map(|kept| Self { end, records: count, ..kept });
            }
        }
        kept
    }
}

fn file_name(id: &str) -> String {
    format!("run-{id}.wandb")
}

fn start_upload(session: &Session, mode: Mode, folder: &Path) -> Option<Live> {
    let Mode::Online { asked } = mode else {
        if session.setting("trainer.wandb_proxy").is_some() {
            tracing::warn!("ignored: trainer.wandb_proxy: nothing is uploaded while the run goes on");
        }
        return None;
    };
    let Some(client) = settings::client(&session.python) else {
        if asked {
            tracing::warn!(
                "W&B: WANDB_MODE=online, but there is no wandb on PATH (pip install wandb): nothing is uploaded while the run goes on"
            );
        }
        return None;
    };
    let live = Live::start(&client, folder, session.setting("trainer.wandb_proxy"));
    live.inspect_err(|error| tracing::warn!("W&B: nothing is uploaded while the run goes on: {error:#}")).ok()
}

#[cfg(test)]
mod tests;
