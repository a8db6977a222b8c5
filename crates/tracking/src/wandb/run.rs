//! A run: its rows, its tables and its end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use super::live_upload::LiveUpload;
use super::records::{self, kind};
use super::settings::{self, Mode, WandbSettings};
use super::system::SystemSampler;
use super::writer::{Writer, lock};
use super::{folder, tables};
use crate::{Ending, Exit, Metrics, StepTable, TrackedRun, Tracker};
use burnish_util::protobuf::ProtobufMessage;
use burnish_util::shell::word;

/// Longest wait for the upload at the end of a run.
const UPLOAD: Duration = Duration::from_secs(30);
/// Exit codes by which the client distinguishes runs ended by Ctrl-C from runs that failed.
const INTERRUPTED: u64 = 255;
const FAILED: u64 = 1;

/// An open run.
pub(crate) struct Wandb {
    writer: Arc<Mutex<Writer>>,
    folder: PathBuf,
    sampler: Option<SystemSampler>,
    live: Option<LiveUpload>,
    opened: Instant,
    /// Time that the run took before it was resumed.
    earlier: Duration,
    /// Step and items of tables that are waiting for the metrics of their step.
    tables: Option<(u64, ProtobufMessage)>,
}

impl Wandb {
    /// Creates the folder of a run, or continues the folder of a resumed run.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn open(session: &TrackedRun, settings: &WandbSettings) -> Result<Self> {
        let (folder, writer, earlier) = match folder::resumed(session, settings)? {
            Some(resumed) => resumed,
            None => folder::start(session, settings)?,
        };
        let writer = Arc::new(Mutex::new(writer));
        let shared = Arc::clone(&writer);
        let sampler = SystemSampler::start(move |values| {
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
    fn row(&self, step: u64, mut items: ProtobufMessage) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        records::item(&mut items, &["_timestamp"], &records::number(now.as_secs_f64()));
        records::item(&mut items, &["_runtime"], &records::number(self.runtime().as_secs_f64()));
        records::item(&mut items, &["_step"], &step.to_string());
        let items = items.into_bytes();
        let row = records::history(items.clone(), step);
        let written = lock(&self.writer).write(&[(kind::SUMMARY, &items), (kind::HISTORY, &row)]);
        written.with_context(|| format!("the row of step {step} is lost"))
    }

    /// Writes the waiting tables as a separate row, because the metrics of their step never came.
    fn flush_tables(&mut self) -> Result<()> {
        self.tables.take().map_or(Ok(()), |(step, items)| self.row(step, items))
    }

    fn check_upload(&mut self) {
        if let Some(Err(error)) = self.live.as_mut().map(LiveUpload::check) {
            tracing::warn!("W&B: the upload stopped, but the run is still written to disk: {error:#}");
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
        let mut items = self.tables.take().map_or_else(ProtobufMessage::default, |(_, items)| items);
        metrics.iter().for_each(|(name, value)| records::item(&mut items, &[name], &records::number(value)));
        self.row(step, items)
    }

    fn table(&mut self, step: u64, table: &StepTable) -> Result<()> {
        if self.tables.as_ref().is_some_and(|(of, _)| *of != step) {
            self.flush_tables()?;
        }
        let lost = || format!("the table '{}' of step {step} is lost", table.name);
        let (path, size) = tables::write(&self.folder.join("files"), step, table).with_context(lost)?;
        lock(&self.writer).write(&[(kind::FILES, &records::file(&path))]).with_context(lost)?;
        let (_, items) = self.tables.get_or_insert_with(|| (step, ProtobufMessage::default()));
        tables::items(items, table, &path, size)
    }

    fn finish(&mut self, ending: &Ending) -> Result<()> {
        let flushed = self.flush_tables();
        if let Some(sampler) = self.sampler.take() {
            sampler.stop();
        }
        let runtime = self.runtime();
        let mut summary = ProtobufMessage::default();
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
            // The record of a preempted machine, which tells the server that the run will be resumed.
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

fn start_upload(session: &TrackedRun, mode: Mode, folder: &Path) -> Option<LiveUpload> {
    let Mode::Online { requested } = mode else {
        if session.setting("trainer.wandb_proxy").is_some() {
            tracing::warn!("trainer.wandb_proxy is ignored: nothing is uploaded during training");
        }
        return None;
    };
    let Some(client) = settings::client(&session.python) else {
        if requested {
            tracing::warn!(
                "W&B: WANDB_MODE=online, but wandb is not on PATH, so nothing is uploaded during training: pip install wandb"
            );
        }
        return None;
    };
    let live = LiveUpload::start(&client, folder, session.setting("trainer.wandb_proxy"));
    live.inspect_err(|error| tracing::warn!("W&B: nothing is uploaded during training: {error:#}")).ok()
}
