//! Folder of a run: created by a fresh run, found by a resumed run.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Error, Result};

use super::log::Log;
use super::records::{self, RunFields, kind};
use super::resumed_log::ResumedLog;
use super::settings::WandbSettings;
use super::writer::Writer;
use crate::TrackedRun;
use burnish_util::platform::{host_name, symlink};
use burnish_util::strftime::strftime;

/// Creates a folder for the run and writes the first records.
pub(super) fn start(session: &TrackedRun, settings: &WandbSettings) -> Result<(PathBuf, Writer, Duration)> {
    let id = settings.id.as_deref().unwrap_or(&session.run_id);
    let seconds = session.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = strftime("%Y%m%d_%H%M%S", seconds as i64, 0).map_err(Error::msg)?;
    let name = format!("offline-run-{time}-{id}");
    let parent = settings.root.join("wandb");
    let folder = std::path::absolute(parent.join(&name)).unwrap_or_else(|_| parent.join(&name));
    for part in ["files", "logs"] {
        fs::create_dir_all(folder.join(part)).with_context(|| format!("cannot create {}", folder.join(part).display()))?;
    }
    let host = host_name();
    let about = RunFields {
        id,
        entity: &settings.entity,
        project: &session.project,
        name: &session.experiment,
        group: &settings.group,
        job_type: &settings.job_type,
        notes: &settings.notes,
        tags: &settings.tags,
        host: &host,
    };
    let run = records::run(&about, &session.config, session.started)?;
    let environment = records::environment(id, &host, session.started);
    let mut writer = Writer { log: Log::create(&folder.join(file_name(id)))?, count: 0 };
    writer.write(&[(kind::HEADER, &records::header()), (kind::RUN, &run), (kind::ENVIRONMENT, &environment)])?;
    session.remember("wandb", &name)?;
    // The client makes this link too; it is only a convenience, so errors are ignored.
    let latest = parent.join("latest-run");
    let _ = fs::remove_file(&latest).and(symlink(&name, &latest)).or_else(|_| symlink(&name, &latest));
    Ok((folder, writer, Duration::ZERO))
}

/// Opens the log that an earlier process of the run began, and removes the rows that the resumed run will write again.
pub(super) fn resumed(session: &TrackedRun, settings: &WandbSettings) -> Result<Option<(PathBuf, Writer, Duration)>> {
    let (Some(last), Some(name)) = (session.resumed_step, session.remembered("wandb")) else { return Ok(None) };
    // The format is offline-run-YYYYMMDD_HHMMSS-ID.
    let Some(id) = name.splitn(4, '-').nth(3) else { return Ok(None) };
    if settings.id.as_deref().is_some_and(|requested| requested != id) {
        tracing::warn!(
            "W&B: WANDB_RUN_ID is not '{id}', the id of the run: a new run begins, without the rows up to step {last}"
        );
        return Ok(None);
    }
    let folder = settings.root.join("wandb").join(&name);
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let path = folder.join(file_name(id));
    let Some(kept) = fs::read(&path).ok().and_then(|file| ResumedLog::find(&file, last)) else {
        tracing::warn!("W&B: {} is missing: a new run begins, without the rows up to step {last}", path.display());
        return Ok(None);
    };
    if kept.last_step != Some(last) && last > 0 {
        tracing::warn!("W&B: {} has no row of step {last}, from which the run continues", path.display());
    }
    let mut writer = Writer { log: Log::resume(&path, kept.end)?, count: kept.records };
    writer.write(&[(kind::CONFIG, &records::config(&session.config)?)])?;
    // The client's marker that everything is uploaded; if it stayed, the client would skip the run.
    let _ = fs::remove_file(path.with_extension("wandb.synced"));
    Ok(Some((folder, writer, kept.runtime)))
}

/// Returns the file name of the log of the run with this id.
pub(super) fn file_name(id: &str) -> String {
    format!("run-{id}.wandb")
}
