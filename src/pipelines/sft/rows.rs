//! The rows of supervised fine-tuning, from the settings of `data`.

use anyhow::{Result, bail, ensure};

use crate::job::unused_options::UnusedOption;
use crate::job::words::ToLayer;
use crate::pipelines::stage::{ChatKeys, RowFiles};
use burnish_config::SftConfig;
use burnish_config::schema::{self, LossPart, OneOrMany, SftDataConfig};
use burnish_data::examples::{LossMask, SftColumns, SftOptions, TwoTexts, load_sft, load_two_texts, pack};
use burnish_data::{SftExample, Tokenizer};

/// Reads and tokenizes rows, and packs them into units.
///
/// # Errors
/// If a file or row cannot be read; the message names it.
pub(in crate::pipelines) fn read(data: &SftDataConfig, tokenizer: &Tokenizer, rows: &RowFiles) -> Result<Vec<SftExample>> {
    let documents = load_sft(&rows.files, tokenizer, &options(data, rows)?)?;
    check_columns(data, rows)?;
    let Some(packing) = data.packing else { return Ok(documents.into_iter().map(SftExample::single).collect()) };
    units(pack(documents, packing.to_layer(), data.unit_length()))
}

/// Reads rows in the tokens of a student and of a teacher with another tokenizer. Nothing is packed.
///
/// # Errors
/// If a file or row cannot be read; the message names it.
pub(in crate::pipelines) fn read_for_two(
    data: &SftDataConfig,
    student: &Tokenizer,
    teacher: &Tokenizer,
    rows: &RowFiles,
) -> Result<Vec<TwoTexts>> {
    let texts = load_two_texts(&rows.files, student, teacher, &options(data, rows)?)?;
    check_columns(data, rows)?;
    Ok(texts)
}

/// Checks that columns exist which the settings name and no row needs.
fn check_columns(data: &SftDataConfig, rows: &RowFiles) -> Result<()> {
    if data.text_key.is_some() { Ok(()) } else { chat_keys(data).check::<SftConfig>(&rows.files, &[]) }
}

fn options(data: &SftDataConfig, rows: &RowFiles) -> Result<SftOptions> {
    let columns = columns(data);
    let mask = loss_mask(data, &columns);
    ensure!(
        columns.has(mask),
        "data.loss_mask={}: rows of {} have no such part",
        data.loss_mask.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(","),
        form(data)
    );
    let splits = matches!(data.packing, Some(schema::PackingMethod::BfdSplit | schema::PackingMethod::Wrapped));
    Ok(SftOptions {
        columns,
        chat: chat_keys(data).columns(),
        loss_mask: mask,
        usual_mask: data.loss_mask.contains(&LossPart::Auto),
        assistant_mask: data.assistant_mask.to_layer(),
        loss_roles: data.loss_roles.to_vec(),
        max_length: if splits { usize::MAX } else { data.max_length },
        overlong: data.truncation.to_layer(),
        chat_kwargs: data.apply_chat_template_kwargs.clone().into_iter().collect(),
        reading: rows.reading,
    })
}

/// Returns the units with a trained token; the others could fill a whole batch.
fn units(mut units: Vec<SftExample>) -> Result<Vec<SftExample>> {
    let all = units.len();
    units.retain(|unit| unit.documents.iter().any(|document| document.learns()));
    if units.is_empty() {
        bail!("no token of the {all} packed units is trained");
    }
    if units.len() < all {
        tracing::warn!("left out {} of {all} packed units: they have no trained token", all - units.len());
    }
    Ok(units)
}

fn columns(data: &SftDataConfig) -> SftColumns {
    let keys = |keys: &Option<OneOrMany<String>>| keys.as_ref().map(|keys| keys.0.clone()).unwrap_or_default();
    if let Some(messages_key) = data.messages_key.clone() {
        return SftColumns::Messages { messages_key };
    }
    if let Some(text_key) = data.text_key.clone() {
        return SftColumns::Text { text_key };
    }
    let prompt_key = data.prompt_key.clone();
    match data.completion_key.clone() {
        Some(completion_key) => SftColumns::Completion { prompt_key, completion_key },
        None => SftColumns::Response {
            prompt_key,
            prompt_dict_keys: keys(&data.prompt_dict_keys),
            response_key: data.response_key.clone(),
            response_dict_keys: keys(&data.response_dict_keys),
        },
    }
}

/// Describes the format of the rows for users.
fn form(data: &SftDataConfig) -> &'static str {
    match (&data.messages_key, &data.text_key, &data.completion_key) {
        (Some(_), ..) => "data.messages_key",
        (_, Some(_), _) => "data.text_key",
        (.., Some(_)) => "data.prompt_key and data.completion_key",
        _ => "data.prompt_key and data.response_key",
    }
}

fn loss_mask(data: &SftDataConfig, columns: &SftColumns) -> LossMask {
    let has = |part| data.loss_mask.contains(&part);
    if has(LossPart::Auto) {
        return columns.usual_mask();
    }
    LossMask { assistant: has(LossPart::Assistant), completion: has(LossPart::Completion) }
}

fn chat_keys(data: &SftDataConfig) -> ChatKeys<'_> {
    ChatKeys {
        tools_key: &data.tools_key,
        enable_thinking_key: &data.enable_thinking_key,
        chat_template_kwargs_key: &data.chat_template_kwargs_key,
    }
}

/// Returns the options of `data` without effect.
pub(in crate::pipelines) fn unused_options(data: &SftDataConfig) -> Vec<UnusedOption> {
    let columns = columns(data);
    let mask = loss_mask(data, &columns);
    let (text, response) = (data.text_key.is_some(), matches!(columns, SftColumns::Response { .. }));
    let prompts = response || matches!(columns, SftColumns::Completion { .. });
    let instead = match form(data) {
        "data.messages_key" => "data.messages_key is read instead",
        "data.text_key" => "data.text_key is read instead",
        _ => "data.completion_key is read instead",
    };
    const TEXT: &str = "texts have no chat template";
    let templated = [
        "data.tools_key",
        "data.enable_thinking_key",
        "data.chat_template_kwargs_key",
        "data.apply_chat_template_kwargs",
        "data.chat_template_date",
    ];
    let assistant = "data.loss_mask is not the assistant's";
    let splits = matches!(data.packing, Some(schema::PackingMethod::BfdSplit | schema::PackingMethod::Wrapped));
    // A completion can contain turns of other roles.
    let finds = mask.assistant || matches!(columns, SftColumns::Completion { .. }) && data.loss_mask.contains(&LossPart::Auto);
    let rows = [
        (!prompts, "data.prompt_key", instead),
        (!response, "data.prompt_dict_keys", instead),
        (!response, "data.response_key", instead),
        (!response, "data.response_dict_keys", instead),
        (!finds, "data.loss_roles", assistant),
        (!finds, "data.assistant_mask", assistant),
        (data.packing.is_none(), "data.packing_length", "it needs data.packing"),
        (splits, "data.truncation", "this data.packing splits longer rows"),
        (splits && data.packing_length.is_some(), "data.max_length", "data.packing_length is read instead"),
    ];
    rows.into_iter().chain(templated.map(|key| (text, key, TEXT))).collect()
}
