//! A model with scripted text: each token decides which tokens may follow.
//!
//! The embedding of a token is one-hot, the layers add nothing, and the head is a table of pairs of tokens. The tokenizer is the
//! tokenizer of the calculator task with further texts as single tokens, so that a complete call of a tool is one token. No
//! training is needed, and every loop gets exactly the turns of the script.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};

use super::common::copy;

/// The token that opens each turn of the model: the last one of the chat template's generation prompt.
pub(crate) const BEGIN: &str = "\n";

/// The token that ends each turn.
pub(crate) const END: &str = "<|im_end|>";

/// The score of a token that may not follow, before the last norm multiplies it: its probability is 0 in float32.
const NEVER: f32 = -40.0;

/// A call of the calculator in Hermes' form.
pub(crate) fn call(expression: &str) -> String {
    format!(r#"<tool_call>{{"name": "calculator", "arguments": {{"expression": "{expression}"}}}}</tool_call>"#)
}

/// Writes a model to a folder, with its tokenizer, and returns the folder.
///
/// `script` maps a token to the tokens that may follow, all with equal probability; [`END`] follows any other token. The script
/// begins at [`BEGIN`]. A text without a token in the calculator's tokenizer becomes a new token.
pub(crate) fn scripted(folder: &Path, script: &[(&str, &[&str])]) -> PathBuf {
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/calculator/model"), folder);
    let ids = write_tokenizer(folder, script);
    // A multiple of the two heads, each with an even number of dimensions.
    let width = ids.len().next_multiple_of(4);
    let mut config: Value = read(&folder.join("config.json"));
    for (key, value) in [("vocab_size", ids.len()), ("hidden_size", width), ("intermediate_size", 4)] {
        config[key] = value.into();
    }
    config["num_hidden_layers"] = 1.into();
    config["max_position_embeddings"] = 8192.into();
    config["tie_word_embeddings"] = false.into();
    write(&folder.join("config.json"), &config);
    write_weights(&folder.join("model.safetensors"), &ids, width, script);
    folder.to_owned()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn write(path: &Path, value: &Value) {
    std::fs::write(path, value.to_string()).unwrap();
}

/// Adds the texts of the script to the tokenizer; returns the id of every token.
fn write_tokenizer(folder: &Path, script: &[(&str, &[&str])]) -> HashMap<String, usize> {
    let path = folder.join("tokenizer.json");
    let mut tokenizer = read(&path);
    let vocabulary = tokenizer["model"]["vocab"].as_object().unwrap();
    let mut ids: HashMap<String, usize> =
        vocabulary.iter().map(|(text, id)| (text.clone(), id.as_u64().unwrap() as usize)).collect();
    for text in script.iter().flat_map(|(from, to)| [from].into_iter().chain(*to)) {
        if ids.contains_key(*text) {
            continue;
        }
        let id = ids.len();
        ids.insert((*text).to_owned(), id);
        tokenizer["model"]["vocab"][*text] = id.into();
        tokenizer["added_tokens"].as_array_mut().unwrap().push(json!({
            "id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false,
        }));
    }
    write(&path, &tokenizer);
    ids
}

fn write_weights(path: &Path, ids: &HashMap<String, usize>, width: usize, script: &[(&str, &[&str])]) {
    let (vocabulary, half) = (ids.len(), width / 2);
    let mut embedding = vec![0.0; vocabulary * width];
    let mut head = vec![NEVER; vocabulary * width];
    for from in 0..vocabulary {
        embedding[from * width + from] = 1.0;
        head[ids[END] * width + from] = 0.0;
    }
    for (from, to) in script {
        head[ids[END] * width + ids[*from]] = NEVER;
        to.iter().for_each(|to| head[ids[*to] * width + ids[*from]] = 0.0);
    }
    let mut tensors = vec![
        ("model.embed_tokens.weight".to_owned(), vec![vocabulary, width], embedding),
        ("lm_head.weight".to_owned(), vec![vocabulary, width], head),
        ("model.norm.weight".to_owned(), vec![width], vec![1.0; width]),
    ];
    for norm in ["input_layernorm", "post_attention_layernorm"] {
        tensors.push((format!("model.layers.0.{norm}.weight"), vec![width], vec![1.0; width]));
    }
    for (name, rows, columns) in [("q_proj", width, width), ("k_proj", half, width), ("v_proj", half, width)] {
        tensors.push((format!("model.layers.0.self_attn.{name}.weight"), vec![rows, columns], vec![0.0; rows * columns]));
        tensors.push((format!("model.layers.0.self_attn.{name}.bias"), vec![rows], vec![0.0; rows]));
    }
    for (name, rows, columns) in
        [("self_attn.o_proj", width, width), ("mlp.gate_proj", 4, width), ("mlp.up_proj", 4, width), ("mlp.down_proj", width, 4)]
    {
        tensors.push((format!("model.layers.0.{name}.weight"), vec![rows, columns], vec![0.0; rows * columns]));
    }
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, shape, values)| (name, shape, values.iter().flat_map(|value: &f32| value.to_le_bytes()).collect()))
        .collect();
    let views = bytes.iter().map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
    safetensors::serialize_to_file(views, None, path).unwrap();
}

/// The model generates the script: calls are one token, and a turn with a choice takes both ways.
#[test]
fn a_scripted_model_says_its_script() {
    let folder = tempfile::tempdir().unwrap();
    let two = call("6*7");
    let model = scripted(&folder.path().join("model"), &[(BEGIN, &[&two, "It is 42."]), (&two, &[" So"]), (" So", &[&two, END])]);
    let rows = folder.path().join("rows.jsonl");
    std::fs::write(&rows, "{\"prompt\": [{\"role\": \"user\", \"content\": \"6*7=\"}]}\n").unwrap();
    let output = folder.path().join("out.parquet");
    let mut command = super::common::of_task("generate");
    command.args(["data.n_samples=32", "rollout.response_length=64"]);
    command.arg(format!("data.path={}", rows.display())).arg(format!("model.path={}", model.display()));
    command.arg(format!("data.output_path={}", output.display()));
    super::common::succeed(command);
    let rows = burnish::data::rows::read_rows(&[output], &["responses"], &[]).unwrap();
    let messages: Vec<&str> = rows[0].values["responses"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let allowed = |text: &&str| *text == "It is 42." || text.split(" So").all(|part| part == two || part.is_empty());
    assert!(messages.len() == 32 && messages.iter().all(allowed), "{messages:?}");
    assert!(messages.contains(&"It is 42.") && messages.contains(&format!("{two} So").as_str()), "{messages:?}");
}
