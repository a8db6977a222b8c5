//! Links at the names of files and folders that a run writes.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::Result;

use super::fs::AtomicDir;
use super::jsonl::StepLog;
use super::lock::lock;
use super::no_follow::{open, write};

/// Each way to write a file or a folder of a run, with a link at its place: to a file, to a folder, to nothing, to itself.
#[test]
fn no_link_leads_out_of_a_folder() {
    type Writer = fn(&Path) -> Result<()>;
    let ways: [(&str, Writer); 6] = [
        ("appended", |path| Ok(open(path, OpenOptions::new().append(true).create(true))?.write_all(b"new")?)),
        ("emptied", |path| open(path, OpenOptions::new().write(true).create(true).truncate(true)).map(drop)),
        ("replaced", |path| write(path, b"new")),
        ("a log of steps", |path| StepLog::open_own(path, Some(3))?.append("{\"step\":4}")),
        (".lock", |path| lock(path.parent().unwrap()).map(drop)),
        ("a folder", |path| {
            let staged = AtomicDir::stage_own(path)?;
            fs::write(staged.path().join("new"), "")?;
            staged.commit()
        }),
    ];
    for (name, write) in ways {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (i, target) in ["precious", "folder", "nothing", "self"].into_iter().enumerate() {
            let run = at(&format!("run{i}"));
            fs::create_dir_all(&run).unwrap();
            fs::create_dir_all(at("folder")).unwrap();
            fs::write(at("precious"), "precious").unwrap();
            fs::write(at("folder/inside"), "inside").unwrap();
            let path = run.join(name);
            symlink(if target == "self" { path.clone() } else { at(target) }, &path).unwrap();
            write(&path).unwrap_or_else(|error| panic!("{name}, {target}: {error:#}"));
            assert!(!path.is_symlink() && path.exists(), "{name}, {target}");
            let kept = ["precious", "folder/inside"].map(|file| fs::read_to_string(at(file)).unwrap());
            assert_eq!((kept, at("nothing").exists()), (["precious".into(), "inside".into()], false), "{name}, {target}");
            assert_eq!(fs::read_dir(at("folder")).unwrap().count(), 1, "{name}, {target}");
            assert_eq!(fs::read_dir(&run).unwrap().count(), 1, "{name}, {target}: something was left");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    assert!(open(dir.path(), OpenOptions::new().append(true)).unwrap_err().to_string().contains("is a folder"));
}
