//! Files that users install: versions, targets and licences that several files name, and the installer with an archive.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use regex::Regex;

use crate::docs::root;

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the groups of all matches, joined by spaces.
fn found(pattern: &str, text: &str) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).unwrap();
    let groups =
        |found: regex::Captures| found.iter().skip(1).flatten().map(|group| group.as_str().to_owned()).collect::<Vec<_>>();
    pattern.captures_iter(text).map(|found| groups(found).join(" ")).collect()
}

/// The list has each crate of Cargo.lock in its version; the crates of the workspace have no `source`.
#[test]
fn licences_of_all_crates_are_listed() {
    let locked = found(r#"name = "(.*)"\nversion = "(.*)"\nsource = "#, &read("Cargo.lock"));
    let listed = found(r"(?m)^\| ([\w-]+) \| (\d\S*) \| [^|]+ \|$", &read("packaging/licences.md"));
    assert!(locked.len() > 500, "{} crates in Cargo.lock", locked.len());
    let differing: Vec<_> = locked.symmetric_difference(&listed).collect();
    assert!(differing.is_empty(), "packaging/licences.md is out of date: run packaging/licences\n{differing:#?}");
}

/// Extras, wheels of variants and the features of the build have the same names; extras ask for the version of this package.
#[test]
fn extras_name_the_variants_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let extras = found(r#"(?m)^(\w+) = \["burnish-(\w+)==(.*)"\]"#, &read("pyproject.toml"));
    let expected = |pattern: &str, file: &str| -> BTreeSet<String> {
        found(pattern, &read(file)).iter().map(|name| format!("{name} {name} {version}")).collect()
    };
    assert_eq!(extras, expected(r#"(?m)^    "(\w+)": \(""#, "packaging/variant-wheel"));
    assert_eq!(extras, expected(r"variant: (\w+),", ".github/workflows/release.yml"));
    assert_eq!(extras, expected(r#"feature: "(\w+)""#, "src/cli/variant.rs"));
}

/// The installer knows the targets that the workflow builds, and `cargo binstall` the names of the archives.
#[test]
fn targets_of_the_installer_are_built() {
    let built = found(r"target: ([\w-]+),", &read(".github/workflows/release.yml"));
    assert_eq!(found(r"\) echo ([\w-]+) ;;", &read("packaging/install.sh")), built);
    assert!(read("packaging/archive").contains(r#"name="burnish-$2""#));
    assert!(read("packaging/install.sh").contains(r#"name="burnish-$(target)""#));
    assert!(read("Cargo.toml").contains("/burnish-{ target }.tar.xz"));
}

/// A folder with the archive of a program that prints `text`, as the release workflow makes it.
fn release(folder: &Path, text: &str) -> String {
    let program = folder.join("program");
    std::fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let target = env!("BURNISH_TARGET");
    let packed = Command::new(root().join("packaging/archive")).arg(&program).arg(target).arg(folder).status().unwrap();
    assert!(packed.success());
    format!("burnish-{target}.tar.xz")
}

fn install(releases: Option<&Path>, folder: &Path) -> Output {
    let mut command = Command::new("sh");
    command.arg(root().join("packaging/install.sh")).env("BURNISH_INSTALL_DIR", folder).env_remove("BURNISH_RELEASES");
    command.env_remove("BURNISH_VERSION");
    if let Some(releases) = releases {
        command.env("BURNISH_RELEASES", releases);
    }
    command.output().unwrap()
}

/// Returns the output of the installed program under both of its names, and the names in the folder.
fn installed(folder: &Path) -> (Vec<String>, Vec<String>) {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let shown = ["trainer", "burnish"].map(|name| Command::new(folder.join(name)).output().unwrap().stdout);
    (shown.map(|shown| String::from_utf8(shown).unwrap().trim().to_owned()).into(), names)
}

/// An archive is installed; a missing address, a damaged archive and a program that does not start are refused, and the program that
/// was there stays.
#[test]
fn the_installer_replaces_a_program_only_by_a_whole_one() {
    if Command::new("xz").arg("--version").output().is_err() {
        eprintln!("xz is missing: the installer is not run");
        return;
    }
    let (release_folder, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (releases, folder) = (release_folder.path(), folder.path().join("bin"));
    let archive = release(releases, "echo trainer 1");
    let output = install(Some(releases), &folder);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && shown.starts_with("trainer 1 is in "), "{output:?}");
    let first = (vec!["trainer 1".to_owned(); 2], vec!["burnish".to_owned(), "trainer".to_owned()]);
    assert_eq!(installed(&folder), first);

    let refused = |releases: Option<&Path>, reason: &str| {
        let output = install(releases, &folder);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(reason), "{output:?}");
        assert_eq!(installed(&folder), first);
    };
    refused(None, "has no address");
    release(releases, "exit 1");
    refused(Some(releases), "does not start");
    release(releases, "echo trainer 2");
    let mut content = std::fs::read(releases.join(&archive)).unwrap();
    content.truncate(content.len() / 2);
    std::fs::write(releases.join(&archive), content).unwrap();
    refused(Some(releases), "nothing was installed");
    std::fs::remove_file(releases.join(&archive)).unwrap();
    refused(Some(releases), &format!("without {archive}"));

    release(releases, "echo trainer 2");
    assert!(install(Some(releases), &folder).status.success());
    assert_eq!(installed(&folder).0, ["trainer 2", "trainer 2"]);
}
