//! Checkpoints survive kills, damage and retention: the files on disk decide, never the memory of a process.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;
use burnish::checkpoint::{BEST_FILE, Checkpoints, ResumeMode, TRACKER_FILE, verify};

fn save(checkpoints: &mut Checkpoints, step: u64) -> PathBuf {
    save_best(checkpoints, step, None)
}

fn save_best(checkpoints: &mut Checkpoints, step: u64, best: Option<u64>) -> PathBuf {
    let write = |dir: &Path| {
        fs::create_dir(dir.join("actor"))?;
        fs::write(dir.join("actor/model.safetensors"), vec![step as u8; 100])?;
        Ok(fs::write(dir.join("data.json"), "{}")?)
    };
    checkpoints.save(step, best, &|| (), write).unwrap()
}

/// The names in a folder, except its lock.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != ".lock");
    names.sort();
    names
}

fn auto(checkpoints: &mut Checkpoints) -> Option<PathBuf> {
    checkpoints.resolve(ResumeMode::Auto, None).unwrap()
}

#[test]
fn a_saved_checkpoint_is_found_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::new(dir.path().join("run"), None).unwrap();
    assert_eq!(auto(&mut checkpoints), None);
    save(&mut checkpoints, 5);
    let saved = save(&mut checkpoints, 10);
    assert_eq!(fs::read_to_string(checkpoints.dir().join(TRACKER_FILE)).unwrap(), "10");
    assert_eq!(names(&saved), ["actor", "data.json", "manifest.json"]);
    assert_eq!(checkpoints.latest().unwrap(), Some((10, saved.clone())));
    assert_eq!(auto(&mut checkpoints), Some(saved.clone()));
    assert_eq!(checkpoints.resolve(ResumeMode::Disable, None).unwrap(), None);
    let manifest = verify(&saved).unwrap();
    assert_eq!((manifest.step, manifest.files.len()), (10, 2));
    // zlib.crc32(bytes([10]) * 100)
    assert_eq!((manifest.files[0].path.as_str(), manifest.files[0].crc32.as_str()), ("actor/model.safetensors", "124c99ca"));
}

#[test]
fn what_a_later_run_has_replaced_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    let [_, _, last] = [2, 4, 5].map(|step| save(&mut checkpoints, step));
    let saved = |checkpoints: &Checkpoints| [2, 3, 4, 5].map(|step| checkpoints.is_followed_by(step, &last));
    assert_eq!(saved(&checkpoints), [true, false, true, true]);
    // A run that was reset to step 2 reaches step 4 again.
    save(&mut checkpoints, 4);
    assert_eq!(saved(&checkpoints), [true, false, false, true]);
}

#[test]
fn a_failed_or_killed_save_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    let good = save(&mut checkpoints, 5);
    let before = names(dir.path());
    let error = checkpoints.save(10, None, &|| (), |staging| {
        fs::write(staging.join("half"), "x")?;
        bail!("the disk is full")
    });
    assert!(format!("{:#}", error.unwrap_err()).contains("step 10: the disk is full"));
    assert_eq!(names(dir.path()), before);

    // The process was killed while writing (its process id cannot be in use), and between the rename and the tracker file.
    let staging = dir.path().join(".tmp-global_step_10-4294967295");
    fs::create_dir(&staging).unwrap();
    fs::write(staging.join("half"), "x").unwrap();
    drop(checkpoints);
    let mut checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    assert_eq!((names(dir.path()), auto(&mut checkpoints)), (before, Some(good.clone())));
    save(&mut checkpoints, 10);
    fs::write(dir.path().join(TRACKER_FILE), "5").unwrap();
    assert_eq!(auto(&mut checkpoints), Some(good));

    // The process was killed while replacing a checkpoint of the same step: the earlier one is restored.
    fs::rename(dir.path().join("global_step_5"), dir.path().join(".old-global_step_5-4294967295")).unwrap();
    drop(checkpoints);
    let mut checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    assert_eq!(auto(&mut checkpoints), Some(checkpoints.path(5)));
}

#[test]
fn the_newest_whole_checkpoint_is_found_whatever_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    for step in [5, 10, 15, 20] {
        save(&mut checkpoints, step);
    }
    let weights = |step: u64| dir.path().join(format!("global_step_{step}/actor/model.safetensors"));
    let mut fallback = |expected: u64| {
        assert_eq!(auto(&mut checkpoints), Some(checkpoints.path(expected)));
        // A damaged checkpoint that is named by its path is an error, without a fallback.
        let damaged = checkpoints.path(expected + 5);
        let named = checkpoints.resolve(ResumeMode::Path, Some(&damaged));
        assert!(named.is_err(), "{named:?}");
    };
    fs::write(dir.path().join(TRACKER_FILE), [0xff, 0xfe]).unwrap();
    fallback(20);
    fs::remove_file(dir.path().join(TRACKER_FILE)).unwrap();
    fallback(20);
    fs::write(dir.path().join(TRACKER_FILE), "20").unwrap();
    fs::write(weights(20), "short").unwrap();
    fallback(15);
    // The same size, with one bit changed.
    let mut altered = fs::read(weights(15)).unwrap();
    altered[50] ^= 1;
    fs::write(weights(15), altered).unwrap();
    fallback(10);
    fs::remove_file(dir.path().join("global_step_10/data.json")).unwrap();
    fallback(5);
    fs::write(dir.path().join("global_step_5/manifest.json"), "{").unwrap();
    let error = format!("{:#}", checkpoints.latest().unwrap_err());
    for part in [
        "model.safetensors is damaged: it has 5 bytes",
        "CRC-32",
        "data.json is missing",
        "global_step_5/manifest.json is damaged",
        "disable",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn damage_is_refused_by_file_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    let saved = save(&mut checkpoints, 5);
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
    let mut checkpoints = Checkpoints::new(dir.path(), None).unwrap();
    let saved = save(&mut checkpoints, 5);
    let resolve = |path: Option<&Path>| Checkpoints::read_only(dir.path()).resolve(ResumeMode::Path, path);
    assert_eq!(resolve(Some(&saved)).unwrap(), Some(saved.clone()));
    let error = |path: Option<&Path>| format!("{:#}", resolve(path).unwrap_err());
    assert!(error(None).contains("resume_from_path is not set"));
    assert!(error(Some(&checkpoints.path(99))).contains("global_step_99"));
    assert!(error(Some(dir.path())).contains("its checkpoints are") && error(Some(dir.path())).contains("global_step_5"));
    assert!(error(Some(tempfile::tempdir().unwrap().path())).contains("must be global_step_<N>"));
    fs::rename(&saved, checkpoints.path(6)).unwrap();
    assert!(error(Some(&checkpoints.path(6))).contains("step 5"));
}

#[test]
fn retention_keeps_the_checkpoints_saved_last_across_runs() {
    let dir = tempfile::tempdir().unwrap();
    let steps = || names(dir.path()).into_iter().filter(|name| name != TRACKER_FILE).collect::<Vec<_>>();
    let mut first_run = Checkpoints::new(dir.path(), None).unwrap();
    (1..=4).for_each(|step| _ = save(&mut first_run, step * 10));
    fs::create_dir(dir.path().join("global_step_5")).unwrap();
    drop(first_run);

    let mut second_run = Checkpoints::new(dir.path(), Some(2)).unwrap();
    assert_eq!(steps().len(), 5, "nothing goes before the first save");
    save(&mut second_run, 50);
    assert_eq!(steps(), ["global_step_40", "global_step_5", "global_step_50"], "a directory without manifest stays");

    // After resuming from an earlier step, its successors are the newest, although their steps are smaller.
    save(&mut second_run, 45);
    assert_eq!(steps(), ["global_step_45", "global_step_5", "global_step_50"]);
    save(&mut second_run, 46);
    assert_eq!(steps(), ["global_step_45", "global_step_46", "global_step_5"]);
}

#[test]
fn retention_spares_the_best_and_counts_no_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    let steps = || names(dir.path()).into_iter().filter(|name| name.starts_with("global")).collect::<Vec<_>>();
    let mut checkpoints = Checkpoints::new(dir.path(), Some(2)).unwrap();
    (1..=4).for_each(|step| _ = save_best(&mut checkpoints, step, Some(1)));
    assert_eq!(steps(), ["global_step_1", "global_step_3", "global_step_4"]);
    assert_eq!(fs::read_to_string(dir.path().join(BEST_FILE)).unwrap(), "1");

    // A damaged checkpoint cannot be resumed from and does not count, so two others remain.
    let data = dir.path().join("global_step_4/data.json");
    fs::write(&data, "[]").unwrap();
    assert_eq!(auto(&mut checkpoints), Some(checkpoints.path(3)));
    save_best(&mut checkpoints, 5, Some(5));
    assert_eq!(steps(), ["global_step_3", "global_step_5"]);
    assert_eq!(fs::read_to_string(dir.path().join(BEST_FILE)).unwrap(), "5");
    save_best(&mut checkpoints, 6, None);
    assert!(!dir.path().join(BEST_FILE).exists());
}

#[test]
fn a_folder_is_for_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let first = Checkpoints::new(dir.path(), None).unwrap();
    let error = Checkpoints::new(dir.path(), None).unwrap_err().to_string();
    assert!(error.contains("another process is training in") && error.contains("default_local_dir"), "{error}");
    drop(first);
    Checkpoints::new(dir.path(), None).unwrap();
}

/// The best checkpoint stays if a resumed run no longer compares it, in later processes too, until its step is saved again.
#[test]
fn the_best_stays_where_its_comparison_ends() {
    for best in [None, Some(2)] {
        let dir = tempfile::tempdir().unwrap();
        let steps = || names(dir.path()).into_iter().filter(|name| name.starts_with("global")).collect::<Vec<_>>();
        let named = || fs::read_to_string(dir.path().join(BEST_FILE)).unwrap();
        let mut first = Checkpoints::new(dir.path(), Some(2)).unwrap();
        (1..=3).for_each(|step| _ = save_best(&mut first, step, Some(1)));
        drop(first);
        let mut second = Checkpoints::new(dir.path(), Some(1)).unwrap();
        assert_eq!(second.keep_best(Some(1)).unwrap(), None, "it is still compared");
        assert_eq!(second.keep_best(best).unwrap(), Some(1));
        assert_eq!(named(), best.unwrap_or(1).to_string());
        save_best(&mut second, 4, best.or(Some(1)));
        save_best(&mut second, 5, Some(5));
        drop(second);
        let mut third = Checkpoints::new(dir.path(), Some(1)).unwrap();
        assert_eq!(third.keep_best(Some(5)).unwrap(), None);
        save_best(&mut third, 6, Some(6));
        assert_eq!((steps(), named()), (vec!["global_step_1".to_owned(), "global_step_6".to_owned()], "6".to_owned()));
        // After another save, it is a different checkpoint.
        save_best(&mut third, 1, Some(6));
        save_best(&mut third, 7, Some(6));
        assert_eq!(steps(), ["global_step_6", "global_step_7"]);
    }
}
