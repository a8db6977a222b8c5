//! Dependencies point in one direction.

use std::path::Path;

/// (folder of src, modules of ours it may import)
const LAYERS: &[(&str, &[&str])] = &[
    ("hydra", &["hydra", "util"]),
    ("config", &["config", "hydra", "util"]),
    ("algorithm", &["algorithm"]),
    ("util", &["util"]),
    ("run", &["run", "tracking", "util"]),
    ("report", &["report", "run", "checkpoint", "util"]),
    ("data", &["data", "util"]),
    ("reward", &["reward", "model", "data", "util"]),
    ("tracking", &["tracking", "util"]),
    ("checkpoint", &["checkpoint", "config", "util"]),
    ("model", &["model", "util"]),
    ("optim", &["optim", "model", "util"]),
    ("rollout", &["rollout", "model", "util"]),
    (
        "job",
        &[
            "job",
            "config",
            "util",
            "algorithm",
            "checkpoint",
            "data",
            "model",
            "optim",
            "report",
            "reward",
            "rollout",
            "run",
            "tracking",
        ],
    ),
];

#[test]
fn layers_import_only_what_is_below_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (folder, allowed) in LAYERS {
        for file in rust_files(&src.join(folder)) {
            let text = std::fs::read_to_string(&file).unwrap();
            for import in text.split("crate::").skip(1) {
                let module: String = import.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                assert!(allowed.contains(&module.as_str()), "{}: {folder} may not import {module}", file.display());
            }
        }
    }
}

/// Files stay small enough to be read in one sitting.
#[test]
fn no_file_has_more_than_600_lines() {
    for file in rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 600, "{} has {lines} lines", file.display());
    }
}

fn rust_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files
}
