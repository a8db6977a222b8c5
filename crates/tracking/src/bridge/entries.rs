//! Registry entries of trackers with Python packages.

use super::sdk::Sdk;
use super::transport::open;
use crate::TrackerEntry;

pub(crate) const SWANLAB: TrackerEntry = TrackerEntry {
    name: "swanlab",
    doc: "A SwanLab experiment, by the swanlab package and its variables: SWANLAB_API_KEY, SWANLAB_MODE (cloud, local, offline, disabled), \
          SWANLAB_LOG_DIR",
    reads: &[],
    open: |session| open(session, Sdk::plain("swanlab", "swanlab", Some("swanlab"), session)),
};

pub(crate) const TRACKIO: TrackerEntry = TrackerEntry {
    name: "trackio",
    doc: "A Trackio run, by the trackio package and its variables: TRACKIO_DIR, TRACKIO_SPACE_ID",
    reads: &[],
    open: |session| open(session, Sdk::plain("trackio", "trackio", Some("trackio"), session)),
};

pub(crate) const CLEARML: TrackerEntry = TrackerEntry {
    name: "clearml",
    doc: "A ClearML task, by the clearml package and its settings (clearml.conf, CLEARML_*); a value that is not finite is a line of its \
          console, since its curves would show 0",
    reads: &[],
    open: |session| open(session, Sdk::plain("clearml", "clearml", Some("clearml"), session)),
};

pub(crate) const VEMLP_WANDB: TrackerEntry = TrackerEntry {
    name: "vemlp_wandb",
    doc: "Volcengine's copy of W&B, by the volcengine_ml_platform package and VOLC_ACCESS_KEY_ID, VOLC_SECRET_ACCESS_KEY, \
          MLP_TRACKING_REGION",
    reads: &[],
    open: |session| open(session, Sdk::plain("vemlp_wandb", "volcengine_ml_platform", None, session)),
};
