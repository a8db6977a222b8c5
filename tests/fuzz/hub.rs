//! Files that Hugging Face's Hub and other programs leave in the cache: lists of files, README files of data sets, indices of
//! shards.

use std::fs;
use std::path::Path;

use burnish::hub::{Environment, Hub, HubName, ModelParts, Purpose, RepoKind};
use serde_json::json;

use crate::Target;

const COMMIT: &str = "607a30d783dfa663caf39e06633721c8d4cfcd7e";

/// A cache in a folder, without network access.
fn offline(folder: &Path) -> Hub {
    let environment = Environment::read(&|name| match name {
        "HF_HOME" => folder.to_str().map(str::to_owned),
        "HF_HUB_OFFLINE" => Some("1".to_owned()),
        _ => None,
    });
    Hub::new(environment.unwrap()).unwrap()
}

/// Writes the only file of a repository that is read, and the list of its files.
fn write(repo: &Path, listing: &[u8], files: &[(&str, &[u8])]) {
    for (path, content) in [("refs/main", COMMIT.as_bytes()), (&format!("burnish/{COMMIT}.json"), listing)] {
        let path = repo.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    for (path, content) in files {
        let path = repo.join("snapshots").join(COMMIT).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn listing(files: &[(&str, usize)]) -> String {
    let entries = files.iter().map(|(path, size)| (path.to_string(), json!({"size": size, "blob_id": "a".repeat(40)})));
    json!({"format_version": 1, "files": entries.collect::<serde_json::Map<_, _>>()}).to_string()
}

pub(crate) fn hub_listings() -> Target {
    Target {
        name: "hub listings",
        seeds: || {
            let data = listing(&[
                ("data/train-00000-of-00002.parquet", 3),
                ("data/train-00001-of-00002.parquet", 3),
                ("x/test.jsonl", 2),
            ]);
            let model = listing(&[("config.json", 2), ("model.safetensors", 3), ("tokenizer.json", 2)]);
            vec![data.into_bytes(), model.into_bytes()]
        },
        words: &[
            "../",
            "/",
            "train",
            "-00000-of-00001",
            ".parquet",
            "\"size\": ",
            "1e99",
            "lfs_sha256",
            "null",
            "{",
            "}",
            "[",
            ",",
        ],
        cases: 1_000,
        read: |input, folder| {
            write(&folder.join("hub/datasets--o--n"), input, &[("data/train-00000-of-00002.parquet", b"abc")]);
            write(&folder.join("hub/models--o--n"), input, &[("config.json", b"{}")]);
            let hub = offline(folder);
            for purpose in [Purpose::Training, Purpose::Validation, Purpose::All] {
                _ = hub.data(&HubName::parse("o/n", RepoKind::Dataset).unwrap(), purpose).map_err(|error| error.to_string());
            }
            _ = hub.model(&HubName::parse("o/n", RepoKind::Model).unwrap(), ModelParts::Whole).map_err(|error| error.to_string());
        },
    }
}

pub(crate) fn hub_readmes() -> Target {
    Target {
        name: "hub readmes",
        seeds: || {
            let card = "---\nlicense: mit\nconfigs:\n- config_name: main\n  default: true\n  data_files:\n  - split: train\n    path: data/tr[a-z]in-*\n  \
                        - split: test\n    path: ['**/te?t.jsonl', x]\n- config_name: 2024\n  data_dir: data\n---\n# Text\n";
            vec![card.as_bytes().to_vec()]
        },
        words: &["- ", "\n", "  ", "path: ", "**/", "*", "[", "]", "{", "}", "&a ", "*a", ": ", "---\n", "\"", "!!binary "],
        cases: 1_000,
        read: |input, folder| {
            let list = listing(&[("README.md", input.len()), ("data/train-0.parquet", 3), ("data/x/test.parquet", 3)]);
            let files: &[(&str, &[u8])] =
                &[("README.md", input), ("data/train-0.parquet", b"abc"), ("data/x/test.parquet", b"abc")];
            write(&folder.join("hub/datasets--o--n"), list.as_bytes(), files);
            let hub = offline(folder);
            for text in ["o/n", "o/n@main/main/test", "o/n@main/2024"] {
                let name = HubName::parse(text, RepoKind::Dataset).unwrap();
                _ = hub.data(&name, Purpose::Training).map_err(|error| error.to_string());
            }
        },
    }
}

pub(crate) fn hub_indices() -> Target {
    Target {
        name: "hub indices",
        seeds: || vec![br#"{"weight_map": {"a.weight": "model-1.safetensors", "b.weight": "model-2.safetensors"}}"#.to_vec()],
        words: &["../", "model-1.safetensors", "{", "}", "[", "]", ",", "\"", "null", "weight_map"],
        cases: 1_000,
        read: |input, folder| {
            const INDEX: &str = "model.safetensors.index.json";
            let sizes = [("config.json", 2), (INDEX, input.len()), ("model-1.safetensors", 3), ("model-2.safetensors", 3)];
            let files: &[(&str, &[u8])] =
                &[("config.json", b"{}"), (INDEX, input), ("model-1.safetensors", b"abc"), ("model-2.safetensors", b"abc")];
            write(&folder.join("hub/models--o--n"), listing(&sizes).as_bytes(), files);
            let found = offline(folder).model(&HubName::parse("o/n", RepoKind::Model).unwrap(), ModelParts::Whole);
            _ = found.map_err(|error| error.to_string());
        },
    }
}
