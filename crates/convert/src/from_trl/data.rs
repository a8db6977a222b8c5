//! Converts the options of the model, its adapters, and the data.

use crate::peers::{Draft, ProgramRows, files_of_split, float, list, one_or_list, set_all_files, set_files, text};
use burnish_hydra::{Node, Value, inline};
use burnish_util::data_format::DATA_ENDINGS;

pub(super) fn derive(draft: &mut Draft) {
    model(draft);
    adapters(draft);
    weights_in_4_bits(draft);
    let row_sources = draft.program.as_ref().map(|program| (program.train.clone(), program.eval.clone()));
    if let Some((Some(train), eval)) = row_sources.filter(|(train, _)| !matches!(train, Some(ProgramRows::OfOptions))) {
        set_rows(draft, "data.train_files", train, "train_dataset");
        return match eval.filter(|_| evaluates(draft)) {
            Some(rows) => set_rows(draft, "data.val_files", rows, "eval_dataset"),
            None => draft.set("data.val_files", Value::Null, "eval_strategy"),
        };
    }
    let set = draft.values.text("dataset_name");
    let split = draft.values.text("dataset_train_split").unwrap_or_else(|| "train".into());
    let mixture = draft.values.items("datasets");
    if !mixture.is_empty() {
        return mixed(draft, mixture);
    }
    let part = draft.values.text("dataset_config");
    let set = set.map(|set| part.map_or(set.clone(), |part| format!("{set}/{part}")));
    set_files(draft, "data.train_files", set.as_deref(), &split, "dataset_name dataset_train_split");
    if evaluates(draft) {
        let split = draft.values.text("dataset_test_split").unwrap_or_else(|| "test".into());
        set_files(draft, "data.val_files", set.as_deref(), &split, "dataset_name dataset_test_split");
    } else {
        draft.set("data.val_files", Value::Null, "eval_strategy");
    }
}

/// Sets a key to rows that a program names.
fn set_rows(draft: &mut Draft, key: &str, rows: ProgramRows, argument: &str) {
    let found = match rows {
        ProgramRows::Split { set, split } => files_of_split(draft, &set, &split).ok_or_else(|| format!("split {split} of {set}")),
        ProgramRows::Files(files) => Ok(files),
        ProgramRows::Unknown(rows) => {
            let set = draft.values.text("dataset_name").map(|set| format!("--dataset_name {set}"));
            Err(rows.replace("the rows of the options", set.as_deref().unwrap_or("the rows of the options")))
        }
        ProgramRows::OfOptions => return,
    };
    match found {
        Ok(files) => draft.set_because(key, one_or_list(files), argument),
        Err(rows) => draft.ask_user(key, format!("{rows}, as files ({DATA_ENDINGS})")),
    }
}

/// Returns true if the command evaluates.
pub(crate) fn evaluates(draft: &Draft) -> bool {
    let named = draft.values.text("eval_strategy").filter(|name| name != "no");
    named.or_else(|| draft.values.text("evaluation_strategy").filter(|name| name != "no")).is_some()
}

fn model(draft: &mut Draft) {
    if let Some(model) = draft.program.as_ref().and_then(|program| program.model.clone()) {
        return draft.set_because("@model.path", text(model), "model");
    }
    if !draft.values.has("sft_model_path") {
        match draft.values.text("model_name_or_path") {
            Some(_) => draft.copy("@model.path", "model_name_or_path"),
            None => draft
                .ask_user("@model.path", "folder of the model, or its name on the Hub: the command has no --model_name_or_path"),
        }
        return;
    }
    draft.copy("@model.path", "sft_model_path");
    let (model, tokenizer) = (draft.values.text("sft_model_path"), draft.values.text("model_name_or_path"));
    if tokenizer.is_some() && tokenizer != model {
        draft.copy("data.tokenizer", "model_name_or_path");
    }
}

fn weights_in_4_bits(draft: &mut Draft) {
    if !draft.values.flag("load_in_4bit") {
        return;
    }
    if !draft.values.flag("use_peft") {
        return draft.refuse(
            "load_in_4bit",
            "weights in 4 bits are trained with LoRA only: add --use_peft, or an adapter in the program",
        );
    }
    let kind = draft.values.text("bnb_4bit_quant_type").unwrap_or_else(|| "nf4".into());
    if kind != "nf4" {
        draft.refuse("bnb_4bit_quant_type", format!("{kind} is not supported: use nf4"));
    }
    draft.copy("@model.load_in_4bit", "load_in_4bit");
    if draft.values.flag("use_bnb_nested_quant") {
        draft.copy("@model.bnb_4bit_use_double_quant", "use_bnb_nested_quant");
    }
}

fn adapters(draft: &mut Draft) {
    if !draft.values.flag("use_peft") {
        if draft.values.is_set("lora_r lora_alpha lora_target_modules use_rslora") {
            draft.note("the options of LoRA are ignored: without --use_peft TRL trains all weights");
        }
        return;
    }
    let rank = draft.values.number("lora_r").unwrap_or(16.0);
    draft.copy("@model.lora_rank", "lora_r");
    if draft.values.flag("use_rslora") {
        let alpha = draft.values.number("lora_alpha").unwrap_or(32.0) * rank.sqrt();
        draft.set("@model.lora_alpha", float(alpha), "lora_alpha use_rslora");
    } else {
        draft.copy("@model.lora_alpha", "lora_alpha");
    }
    let targets = draft.values.items("lora_target_modules");
    match targets.as_slice() {
        [] => {
            let why = "PEFT's default for llama, mistral, qwen and gemma; gpt_neox: query_key_value, gpt2: c_attn";
            draft.set_because("@model.target_modules", list([text("q_proj"), text("v_proj")]), why);
        }
        [one] => draft.set("@model.target_modules", one.clone(), "lora_target_modules"),
        several => draft.set("@model.target_modules", list(several.to_vec()), "lora_target_modules"),
    }
    // PEFT's default differs from TRL's.
    let of_peft = draft.program.as_ref().is_some_and(|program| program.options.iter().any(|option| option.name == "use_peft"));
    if of_peft && !draft.values.is_set("lora_dropout") {
        return;
    }
    if let Some(dropout) = draft.values.number("lora_dropout").filter(|dropout| *dropout > 0.0) {
        draft.note(format!("lora_dropout {dropout} is ignored: dropout is not implemented"));
    }
}

/// Returns the files of a split from `data_files`: a mapping from splits to files, or files of the split `train`.
///
/// # Errors
/// A description of the rows, if `data_files` has no files of the split.
fn files_of(files: Value, split: &str) -> Result<Vec<String>, String> {
    let unknown = || format!("split {split} of {}", inline(&files));
    let files_of_split = match &files {
        Value::Map(splits) => &splits.get(split).ok_or_else(unknown)?.value,
        files if split == "train" => files,
        _ => return Err(unknown()),
    };
    let name = |value: &Value| if let Value::Text(file) = value { Some(file.clone()) } else { None };
    let names: Option<Vec<String>> = match files_of_split {
        Value::List(items) => items.iter().map(|item| name(&item.value)).collect(),
        one => name(one).map(|file| vec![file]),
    };
    names.ok_or_else(unknown)
}

/// Sets the files of a mixture of data sets from a YAML file of TRL.
fn mixed(draft: &mut Draft, mixture: Vec<Value>) {
    if draft.values.is_set("dataset_name") {
        draft.note("--dataset_name: TRL does not read it with a mixture of data sets");
    }
    let mut sets = vec![];
    for set in mixture {
        let node = Node::new(set, burnish_hydra::Origin::Override("".into()));
        let at = |name: &str| node.child(name).map(|child| child.value.clone()).filter(|value| *value != Value::Null);
        for name in ["columns", "fraction", "data_dir"] {
            if at(name).is_some() {
                draft.refuse("datasets", format!("`{name}` of a data set is not supported: write the selected rows to a file"));
            }
        }
        let split = if let Some(Value::Text(split)) = at("split") { split } else { "train".into() };
        let named = match (at("data_files"), at("path"), at("name")) {
            (Some(files), ..) => files_of(files, &split),
            (None, Some(Value::Text(path)), part) => {
                let path = if let Some(Value::Text(part)) = part { format!("{path}/{part}") } else { path };
                files_of_split(draft, &path, &split).ok_or_else(|| format!("split {split} of {path}"))
            }
            _ => Err("rows of a data set without a path".into()),
        };
        sets.push(named);
    }
    set_all_files(draft, "data.train_files", sets, "datasets");
    if evaluates(draft) {
        draft.ask_user("data.val_files", format!("files of validation rows ({DATA_ENDINGS})"));
    } else {
        draft.set("data.val_files", Value::Null, "eval_strategy");
    }
}
