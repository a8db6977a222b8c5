//! `trainer export --gguf`: the file has the tensors of the plain export, and the tokenizer.

use std::collections::BTreeMap;
use std::fs;

use burnish::model::tensor_values::to_f32;
use burnish::model::weights::WeightFiles;

use crate::common::{messages, small_run, succeed, trainer};

/// Reads a GGUF file by the specification.
struct GgufReader {
    bytes: Vec<u8>,
    at: usize,
}

impl GgufReader {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        self.at += N;
        self.bytes[self.at - N..self.at].try_into().unwrap()
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn text(&mut self) -> String {
        let length = self.u64() as usize;
        self.at += length;
        String::from_utf8(self.bytes[self.at - length..self.at].to_vec()).unwrap()
    }

    /// A value as text; the items of an array are counted and the first is shown.
    fn value(&mut self, kind: u32) -> String {
        match kind {
            4 => self.u32().to_string(),
            5 => i32::from_le_bytes(self.take()).to_string(),
            6 => f32::from_le_bytes(self.take()).to_string(),
            7 => (self.take::<1>()[0] == 1).to_string(),
            8 => self.text(),
            9 => {
                let (kind, count) = (self.u32(), self.u64());
                let items: Vec<String> = (0..count).map(|_| self.value(kind)).collect();
                format!("{count} × {}", items.first().map_or("", String::as_str))
            }
            other => panic!("no value of kind {other} is written"),
        }
    }
}

type Tensors = BTreeMap<String, (Vec<usize>, u32, Vec<u8>)>;

fn read(path: &std::path::Path) -> (BTreeMap<String, String>, Tensors) {
    let mut file = GgufReader { bytes: fs::read(path).unwrap(), at: 0 };
    assert_eq!((file.take(), file.u32()), (*b"GGUF", 3));
    let (tensors, settings) = (file.u64(), file.u64());
    let mut metadata = BTreeMap::new();
    for _ in 0..settings {
        let (key, kind) = (file.text(), file.u32());
        let value = file.value(kind);
        assert!(metadata.insert(key.clone(), value).is_none(), "{key} twice");
    }
    let mut places = Vec::new();
    for _ in 0..tensors {
        let (name, dims) = (file.text(), file.u32());
        let mut shape: Vec<usize> = (0..dims).map(|_| file.u64() as usize).collect();
        shape.reverse();
        places.push((name, shape, file.u32(), file.u64() as usize));
    }
    let start = file.at.next_multiple_of(32);
    let tensor = |(name, shape, kind, offset): (String, Vec<usize>, u32, usize)| {
        assert!(offset.is_multiple_of(32), "{name}");
        let count: usize = shape.iter().product();
        let bytes = match kind {
            0 => 4 * count,
            1 => 2 * count,
            8 => count / 32 * 34,
            other => panic!("{name} is of kind {other}"),
        };
        (name, (shape, kind, file.bytes[start + offset..start + offset + bytes].to_vec()))
    };
    (metadata, places.into_iter().map(tensor).collect())
}

#[test]
fn a_gguf_file_has_the_tensors_of_the_export_and_the_tokenizer() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut sft = trainer(&["sft", "--config", "recipes/calculator/sft.yaml", "trainer.total_training_steps=1"]);
    sft.arg(format!("trainer.default_local_dir={}", at("run").display()));
    succeed(sft);
    let export = |more: &[&str]| trainer(&[&["export", at("run").to_str().unwrap()], more].concat());
    succeed(export(&["--output", at("plain").to_str().unwrap()]));
    succeed(export(&["--gguf", "float32", "--output", at("whole.gguf").to_str().unwrap()]));
    succeed(export(&["--gguf", "q8_0", "--output", at("small.gguf").to_str().unwrap()]));

    let (metadata, whole) = read(&at("whole.gguf"));
    for (key, value) in [
        ("general.architecture", "qwen2"),
        ("general.name", "whole"),
        ("qwen2.attention.head_count_kv", "1"),
        ("tokenizer.ggml.model", "gpt2"),
        ("tokenizer.ggml.pre", "qwen2"),
    ] {
        assert_eq!(metadata.get(key).map(String::as_str), Some(value), "{key}: {metadata:?}");
    }
    assert!(metadata["tokenizer.chat_template"].contains("<|im_start|>") && metadata["tokenizer.ggml.tokens"].contains(" × "));
    let files = WeightFiles::open(&at("plain")).unwrap();
    let plain = files.tensors().unwrap();
    assert_eq!(whole.len(), plain.len());
    let mut own: Vec<Vec<u8>> = whole.into_values().map(|(_, _, bytes)| bytes).collect();
    let mut theirs: Vec<Vec<u8>> =
        plain.values().map(|view| to_f32(view).unwrap().iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
    own.sort();
    theirs.sort();
    assert!(own == theirs, "the values differ");
    let (_, small) = read(&at("small.gguf"));
    // Rows that blocks of 32 do not divide are float16.
    for (name, (shape, kind, _)) in &small {
        let expected = match shape[..] {
            [_, row] if row.is_multiple_of(32) => 8,
            [_, _] => 1,
            _ => 0,
        };
        assert_eq!(*kind, expected, "{name} {shape:?}");
    }
}

/// Each entry: (the run's model, further arguments, parts of the message).
const REFUSED: &[(&[&str], &str)] = &[
    (&["--gguf", "float16", "--output", "NEW"], "with --gguf it is a file, whose name ends in .gguf"),
    (&["--gguf", "float16", "--dtype", "float16", "--output", "NEW.gguf"], "cannot be used with"),
    (&["--gguf", "float16", "--output", "NEW.gguf"], "a tokenizer of kind WordLevel has no place in a GGUF file"),
];

#[test]
fn a_model_that_llama_cpp_lacks_is_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    succeed(small_run(&run, &["trainer.total_training_steps=1", "trainer.save_freq=1", "trainer.val_before_train=false"]));
    for (arguments, part) in REFUSED {
        let named: Vec<String> =
            arguments.iter().map(|a| a.replace("NEW", folder.path().join("new").to_str().unwrap())).collect();
        let mut command = trainer(&["export", run.to_str().unwrap()]);
        let output = command.args(&named).output().unwrap();
        assert!(!output.status.success() && messages(&output).contains(part), "{part}: {}", messages(&output));
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["run"]);
}
