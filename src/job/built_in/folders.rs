//! The folders that are built into the program, without recipes: `burnish_config` has these. A test compares this table with the
//! repository.

/// A folder of the repository.
pub(super) struct BuiltInFolder {
    /// The path of the folder in the repository.
    pub name: &'static str,
    /// The path of each file below the folder, and its bytes.
    pub files: &'static [(&'static str, &'static [u8])],
}

/// Includes the files of a folder.
macro_rules! folder {
    ($name:literal, $($file:literal),+ $(,)?) => {
        BuiltInFolder {
            name: $name,
            files: &[$(($file, include_bytes!(concat!("../../../", $name, "/", $file)))),+],
        }
    };
}

pub(super) const FOLDERS: &[BuiltInFolder] = &[
    folder!(
        "data/arithmetic",
        "model/config.json",
        "model/model.safetensors",
        "model/tokenizer.json",
        "model/tokenizer_config.json",
        "pairs/test.parquet",
        "pairs/train.parquet",
        "reward_model/config.json",
        "reward_model/model.safetensors",
        "reward_model/reward_model.json",
        "reward_model/tokenizer.json",
        "reward_model/tokenizer_config.json",
        "steps/test.parquet",
        "steps/train.parquet",
        "test.parquet",
        "train.parquet",
        "unpaired/test.parquet",
        "unpaired/train.parquet",
    ),
    folder!(
        "data/calculator",
        "demonstrations/test.parquet",
        "demonstrations/train.parquet",
        "model/config.json",
        "model/model.safetensors",
        "model/tokenizer.json",
        "model/tokenizer_config.json",
        "test.parquet",
        "tools.yaml",
        "train.parquet",
    ),
    folder!("recipes/arithmetic/student", "config.json"),
    folder!("recipes/gsm8k/qwen2_small", "config.json"),
    folder!("recipes/guess", "guess.py", "test.jsonl", "train.jsonl"),
    folder!("recipes/tldr", "judge_tldr.py"),
];
