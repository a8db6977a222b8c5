//! Settings from the client's environment variables.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::super::TrackedRun;
use burnish_util::platform;

/// The way in which a run reaches the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    /// Uploaded during the run, by a process of the client.
    Online {
        /// True if WANDB_MODE requests it, false if a key was found.
        requested: bool,
    },
    /// Uploaded later, by `wandb sync`.
    Offline,
    /// Not written at all.
    Disabled,
}

#[derive(Debug)]
pub(super) struct WandbSettings {
    pub mode: Mode,
    pub(crate) entity: String,
    pub group: String,
    pub(crate) job_type: String,
    pub notes: String,
    pub tags: Vec<String>,
    /// Run id from WANDB_RUN_ID; `None` if this program chooses one.
    pub id: Option<String>,
    /// Folder that contains the folder `wandb`.
    pub root: PathBuf,
}

impl WandbSettings {
    pub(super) fn from_environment(session: &TrackedRun) -> Result<Self> {
        Self::from_environment_of(session, |name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    pub(crate) fn from_environment_of(session: &TrackedRun, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        check_resume(session, variable("WANDB_RESUME").as_deref())?;
        for (name, key, used) in [
            ("WANDB_PROJECT", "trainer.project_name", &session.project),
            ("WANDB_NAME", "trainer.experiment_name", &session.experiment),
        ] {
            if variable(name).is_some_and(|value| value != *used) {
                tracing::warn!("{name} is ignored: {key} is '{used}'");
            }
        }
        let text = |name| variable(name).unwrap_or_default();
        let tags = text("WANDB_TAGS").split(',').map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect();
        Ok(Self {
            mode: mode(&variable)?,
            entity: text("WANDB_ENTITY"),
            group: text("WANDB_RUN_GROUP"),
            job_type: text("WANDB_JOB_TYPE"),
            notes: text("WANDB_NOTES"),
            tags,
            id: variable("WANDB_RUN_ID").map(checked_id).transpose()?,
            root: variable("WANDB_DIR").map_or_else(|| session.dir.clone(), PathBuf::from),
        })
    }
}

fn mode(variable: &impl Fn(&str) -> Option<String>) -> Result<Mode> {
    Ok(match variable("WANDB_MODE").as_deref() {
        Some("online" | "run") => Mode::Online { requested: true },
        Some("offline" | "dryrun") => Mode::Offline,
        Some("disabled") => Mode::Disabled,
        Some(other) => bail!("WANDB_MODE: '{other}' is not one of online, offline, disabled"),
        None if has_key(variable) => Mode::Online { requested: false },
        None => Mode::Offline,
    })
}

/// Returns true if the client finds credentials for the upload.
fn has_key(variable: &impl Fn(&str) -> Option<String>) -> bool {
    let server = variable("WANDB_BASE_URL").unwrap_or_else(|| "https://api.wandb.ai".into());
    let host = server.split_once("://").map_or(server.as_str(), |(_, rest)| rest);
    let host = host.split(['/', ':']).next().unwrap_or_default();
    let netrc = variable("NETRC").or_else(|| Some(variable("HOME")? + "/.netrc"));
    let known = netrc.and_then(|path| std::fs::read_to_string(path).ok()).is_some_and(|netrc| names(&netrc, host));
    known || variable("WANDB_API_KEY").is_some()
}

/// Returns true if a `.netrc` has an entry for a host.
fn names(netrc: &str, host: &str) -> bool {
    let words: Vec<&str> = netrc.split_whitespace().collect();
    words.windows(2).any(|pair| pair == ["machine", host])
}

/// Checks WANDB_RESUME. The checkpoint determines if a run is resumed, and the variable must agree with it.
fn check_resume(session: &TrackedRun, demanded: Option<&str>) -> Result<()> {
    match (demanded, session.resumed_step) {
        (Some("never"), Some(step)) => {
            bail!("WANDB_RESUME=never, but the run continues from step {step}: unset it, or set trainer.resume_mode=disable")
        }
        (Some("must"), None) => {
            bail!("WANDB_RESUME=must, but there is no checkpoint to resume: unset it, or set trainer.resume_mode")
        }
        (None | Some("allow" | "auto" | "must" | "never"), _) => Ok(()),
        (Some(other), _) => bail!("WANDB_RESUME: '{other}' is not one of allow, auto, must, never"),
    }
}

fn checked_id(id: String) -> Result<String> {
    // The client's rule for ids, which are part of file names too.
    if id.len() > 128 || id.contains(['/', '\\', '#', '?', '%', ':']) || id.trim() != id {
        bail!("WANDB_RUN_ID: '{id}' must have at most 128 characters, none of /\\#?%:, and no space around it");
    }
    Ok(id)
}

/// Finds the program `wandb` in the folders of `PATH`, or next to the session's Python interpreter.
pub(super) fn client(python: &str) -> Option<PathBuf> {
    let beside = Path::new(python).parent().filter(|dir| !dir.as_os_str().is_empty()).map(Path::to_path_buf);
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).chain(beside).map(|dir| dir.join("wandb")).find(|program| is_program(program));
    found.and_then(|program| std::path::absolute(program).ok())
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| platform::is_program(&about))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(known: &[(&str, &str)], resumed_step: Option<u64>) -> Result<WandbSettings> {
        let session = TrackedRun::in_folder("run".into(), resumed_step);
        WandbSettings::from_environment_of(&session, |name| {
            known.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn the_environment_says_where_and_how() {
        let settings = read(&[], None).unwrap();
        assert_eq!((settings.mode, settings.root), (Mode::Offline, PathBuf::from("run")));
        let settings =
            read(&[("WANDB_API_KEY", "x"), ("WANDB_TAGS", "a, b,"), ("WANDB_DIR", "d"), ("WANDB_RUN_ID", "i")], None).unwrap();
        assert_eq!(settings.mode, Mode::Online { requested: false });
        assert_eq!((settings.tags, settings.root, settings.id), (vec!["a".into(), "b".into()], "d".into(), Some("i".into())));
        assert_eq!(read(&[("WANDB_MODE", "offline"), ("WANDB_API_KEY", "x")], None).unwrap().mode, Mode::Offline);
        let dir = tempfile::tempdir().unwrap();
        let netrc = dir.path().join("netrc");
        std::fs::write(&netrc, "machine w.example.org\n login user\n password x\n").unwrap();
        let mode = |server| read(&[("NETRC", netrc.to_str().unwrap()), ("WANDB_BASE_URL", server)], None).unwrap().mode;
        assert_eq!(mode("https://w.example.org:8080/x"), Mode::Online { requested: false });
        assert_eq!(mode("https://example.org"), Mode::Offline);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_choices() {
        let error = |name, value, resumed_step| {
            read(&[(name, value)], resumed_step).map_or_else(|error| error.to_string(), |_| String::new())
        };
        assert_eq!(error("WANDB_MODE", "on", None), "WANDB_MODE: 'on' is not one of online, offline, disabled");
        assert!(error("WANDB_RESUME", "yes", None).contains("allow, auto, must, never"));
        assert!(error("WANDB_RESUME", "never", Some(3)).contains("step 3"));
        assert!(error("WANDB_RESUME", "must", None).contains("no checkpoint"));
        assert!(error("WANDB_RUN_ID", "a/b", None).contains("a/b"));
        assert_eq!(error("WANDB_RESUME", "never", None) + &error("WANDB_RESUME", "must", Some(1)), "");
    }
}
