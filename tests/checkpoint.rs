//! Checkpoints survive kills, damage and retention: what is on disk decides, never what a process remembers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;
use burnish::checkpoint::{Checkpoints, ResumeMode, TRACKER_FILE, verify};

fn save(checkpoints: &Checkpoints, step: u64) -> PathBuf {
    let write = |dir: &Path| {
        fs::create_dir(dir.join("actor"))?;
        fs::write(dir.join("actor/model.safetensors"), vec![step as u8; 100])?;
        Ok(fs::write(dir.join("data.json"), "{}")?)
    };
    checkpoints.save(step, write).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn auto(checkpoints: &Checkpoints) -> Option<PathBuf> {
    checkpoints.resolve(ResumeMode::Auto, None).unwrap()
}

#[test]
fn a_saved_checkpoint_is_found_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(dir.path().join("run"), None).unwrap();
    assert_eq!(auto(&checkpoints), None);
    save(&checkpoints, 5);
    let saved = save(&checkpoints, 10);
    assert_eq!(fs::read_to_string(checkpoints.dir().join(TRACKER_FILE)).unwrap(), "10");
    assert_eq!(names(&saved), ["actor", "data.json", "manifest.json"]);
    assert_eq!(checkpoints.latest().unwrap(), Some((10, saved.clone())));
    assert_eq!(auto(&checkpoints), Some(saved.clone()));
    assert_eq!(checkpoints.resolve(ResumeMode::Disable, None).unwrap(), None);
    let manifest = verify(&saved).unwrap();
    assert_eq!((manifest.step, manifest.files.len()), (10, 2));
    // zlib.crc32(bytes([10]) * 100)
    assert_eq!((manifest.files[0].path.as_str(), manifest.files[0].crc32.as_str()), ("actor/model.safetensors", "124c99ca"));
}

#[test]
fn a_failed_or_killed_save_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    let good = save(&checkpoints, 5);
    let before = names(dir.path());
    let error = checkpoints.save(10, |staging| {
        fs::write(staging.join("half"), "x")?;
        bail!("the disk is full")
    });
    assert!(format!("{:#}", error.unwrap_err()).contains("step 10: the disk is full"));
    assert_eq!(names(dir.path()), before);

    // Killed while writing (a process id that cannot be in use), and between the rename and the tracker file.
    let staging = dir.path().join(".tmp-global_step_10-4294967295");
    fs::create_dir(&staging).unwrap();
    fs::write(staging.join("half"), "x").unwrap();
    let checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    assert_eq!((names(dir.path()), auto(&checkpoints)), (before, Some(good.clone())));
    save(&checkpoints, 10);
    fs::write(dir.path().join(TRACKER_FILE), "5").unwrap();
    assert_eq!(auto(&checkpoints), Some(good));

    // Killed while replacing a checkpoint of the same step: the earlier one comes back.
    fs::rename(dir.path().join("global_step_5"), dir.path().join(".old-global_step_5-4294967295")).unwrap();
    let checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    assert_eq!(auto(&checkpoints), Some(checkpoints.path(5)));
}

#[test]
fn latest_falls_back_to_the_newest_complete_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    for step in [5, 10, 15] {
        save(&checkpoints, step);
    }
    let fallback = |expected: u64| assert_eq!(auto(&checkpoints), Some(checkpoints.path(expected)));
    fs::write(dir.path().join(TRACKER_FILE), "garbage").unwrap();
    fallback(15);
    fs::remove_file(dir.path().join(TRACKER_FILE)).unwrap();
    fallback(15);
    fs::write(dir.path().join(TRACKER_FILE), "15").unwrap();
    fs::write(checkpoints.path(15).join("actor/model.safetensors"), "short").unwrap();
    fallback(10);
    fs::remove_file(checkpoints.path(10).join("data.json")).unwrap();
    fallback(5);
    fs::remove_dir_all(checkpoints.path(5)).unwrap();
    let error = format!("{:#}", checkpoints.latest().unwrap_err());
    assert!(error.contains("names step 15") && error.contains("disable"), "{error}");
}

#[test]
fn damage_is_refused_by_file_name() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    let saved = save(&checkpoints, 5);
    let weights = saved.join("actor/model.safetensors");
    let mut altered = fs::read(&weights).unwrap();
    altered[50] ^= 1;
    fs::write(&weights, altered).unwrap();
    let error = format!("{:#}", checkpoints.resolve(ResumeMode::Auto, None).unwrap_err());
    assert!(error.contains("actor/model.safetensors is damaged"), "{error}");
    fs::remove_file(&weights).unwrap();
    assert!(verify(&saved).unwrap_err().to_string().contains("actor/model.safetensors is missing"));
    fs::write(saved.join("manifest.json"), "{").unwrap();
    assert!(verify(&saved).unwrap_err().to_string().contains("manifest.json is damaged"));
}

#[test]
fn resume_path_must_be_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    let saved = save(&checkpoints, 5);
    let resolve = |path: Option<&Path>| checkpoints.resolve(ResumeMode::Path, path);
    assert_eq!(resolve(Some(&saved)).unwrap(), Some(saved.clone()));
    let error = |path: Option<&Path>| format!("{:#}", resolve(path).unwrap_err());
    assert!(error(None).contains("resume_from_path is not set"));
    assert!(error(Some(&checkpoints.path(99))).contains("global_step_99"));
    assert!(error(Some(dir.path())).contains("must be global_step_<N>"));
    fs::rename(&saved, checkpoints.path(6)).unwrap();
    assert!(error(Some(&checkpoints.path(6))).contains("step 5"));
}

#[test]
fn retention_keeps_the_checkpoints_saved_last_across_runs() {
    let dir = tempfile::tempdir().unwrap();
    let steps = || names(dir.path()).into_iter().filter(|name| name != TRACKER_FILE).collect::<Vec<_>>();
    let first_run = Checkpoints::new(dir.path(), None).unwrap();
    (1..=4).for_each(|step| _ = save(&first_run, step * 10));
    fs::create_dir(dir.path().join("global_step_5")).unwrap();

    let second_run = Checkpoints::new(dir.path(), Some(2)).unwrap();
    assert_eq!(steps().len(), 5, "nothing goes before the first save");
    save(&second_run, 50);
    assert_eq!(steps(), ["global_step_40", "global_step_5", "global_step_50"], "a directory without manifest stays");

    // Going back to an earlier step makes its successors the newest, although their steps are smaller.
    save(&second_run, 45);
    assert_eq!(steps(), ["global_step_45", "global_step_5", "global_step_50"]);
    save(&second_run, 46);
    assert_eq!(steps(), ["global_step_45", "global_step_46", "global_step_5"]);
}
