//! TL;DR summaries of Reddit posts (Völske et al. 2017, Stiennon et al. 2020) in verl's schema: the prompts of TRL's RLOO
//! example, with a human summary as reference.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::pairs::{PairRow, write_pairs};
use super::preparer::{PrepareArgs, PrepareReport, Preparer};
use super::published::{find_split, split_files};
use super::row_mapping::{RowMapping, text};
use super::schema::VerlRow;
use crate::files::rows::{FileRows, Row};

pub(super) static TLDR: Preparer = Preparer {
    name: "tldr",
    doc: "TL;DR: posts to summarise, with a human summary as ground truth, which rules cannot compare: use a reward model, or a judge \
          such as recipes/tldr/judge_tldr.py. Setting prompt=text writes plain text prompts for a model without chat template; if the \
          files have chosen and rejected, pairs/ has them for a reward model",
    files: "train, and validation and test if present, with the columns prompt and completion of the data set trl-lib/tldr, or \
            prompt and messages of trl-internal-testing/tldr-preference-sft-trl-style",
    hub: &["trl-lib/tldr"],
    licence: "not named by the pages; the posts are from Webis-TLDR-17, CC BY 4.0",
    run: tldr,
};

fn tldr(args: &PrepareArgs) -> Result<PrepareReport> {
    args.only_settings(&["prompt"])?;
    let as_text = match args.setting("prompt", "messages".to_owned())?.as_str() {
        "messages" => false,
        "text" => true,
        other => bail!("prompt={other}: must be messages or text"),
    };
    let folder = args.input()?;
    let mut sources = vec![("train", split_files(folder, "train")?)];
    for split in ["validation", "test"] {
        sources.extend(find_split(folder, split)?.map(|files| (split, files)));
    }
    let mut written = Vec::new();
    for (split, files) in sources {
        let columns = FileRows::read(&files, &[], &["messages", "completion", "chosen", "rejected"])?;
        let path = args.target(&format!("{split}.parquet"))?;
        let rows = if columns.has_column("messages") && !columns.has_column("completion") {
            let row = move |row: &Row, split: &str, index| {
                let (post, summary) = conversation(row.column("messages")?)?;
                Ok(verl_row("trl-internal-testing/tldr-preference-sft-trl-style", post, summary, as_text, split, index))
            };
            RowMapping { reads: &["messages"], drops: PAIRED, row }.write(&files, split, &path)?
        } else {
            let row = move |row: &Row, split: &str, index| {
                Ok(verl_row("trl-lib/tldr", text(row, "prompt")?, text(row, "completion")?, as_text, split, index))
            };
            RowMapping { reads: &["prompt", "completion"], drops: PAIRED, row }.write(&files, split, &path)?
        };
        written.push((path, rows));
        if columns.has_column("chosen") && columns.has_column("rejected") {
            let path = args.target(&format!("pairs/{split}.parquet"))?;
            let pairs = FileRows::read(&files, &["prompt", "chosen", "rejected"], &[])?.each(|_, row| pair(&row))?;
            write_pairs(&path, &pairs)?;
            written.push((path, pairs.len()));
        }
    }
    Ok(PrepareReport { files: written })
}

/// Columns that are written to `pairs/`.
const PAIRED: &[&str] = &["chosen", "rejected"];

fn verl_row(data_source: &'static str, post: &str, summary: &str, as_text: bool, split: &str, index: usize) -> VerlRow {
    VerlRow {
        data_source,
        prompt: if as_text { post.into() } else { VerlRow::user(post) },
        ability: "summarization",
        style: "model",
        ground_truth: summary.to_owned(),
        extra_info: json!({"split": split, "index": index}),
    }
}

/// Returns the post and the summary of a conversation of two messages.
fn conversation(messages: &Value) -> Result<(&str, &str)> {
    let content = |i: usize| messages.get(i).and_then(|message| message.get("content")).and_then(Value::as_str);
    content(0).zip(content(1)).context("\"messages\" must be a message with a post and a message with its summary")
}

fn pair(row: &Row) -> Result<PairRow> {
    // A reply is text, or a conversation that ends with it.
    let reply = |name: &str| {
        let value = row.column(name)?;
        let last = value.as_array().and_then(|messages| messages.last()?.get("content"));
        let text = last.unwrap_or(value).as_str();
        text.map(str::to_owned).with_context(|| format!("\"{name}\" must be text or a list of messages"))
    };
    Ok(PairRow { prompt: text(row, "prompt")?.to_owned(), chosen: reply("chosen")?, rejected: reply("rejected")? })
}
