//! A replay as text for the terminal.

use std::fmt::Write as _;

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};

use super::again::{duration, place};
use super::outcome::{Replay, Replayed};
use super::recorded::RecordedSteps;
use crate::job::probe::{ProbedSample, ProbedStep, ProbedText, TokenColumns};
use burnish_util::excerpt::beginning_of;
use burnish_util::number::short;
use burnish_util::printable::printable;
use burnish_util::terminal;

/// Samples, layers and metrics that a table has at most.
const MOST: usize = 12;
/// Characters of a response in a table.
const EXCERPT: usize = 40;

/// Returns the whole text. `sample`: the number of a sample to show token by token.
pub(super) fn of(recorded: &RecordedSteps, replay: &Replay, sample: Option<usize>) -> String {
    let Some(first) = replay.shown.first() else { return String::new() };
    let count = replay.before.len() + replay.shown.len();
    let steps = if count == 1 { "1 step".to_owned() } else { format!("{count} steps") };
    let mut text = format!(
        "step {} of {}, made again from {}: {steps} in {}\n",
        first.step,
        recorded.dir.display(),
        place(&replay.from),
        duration(replay.seconds)
    );
    text.push_str(&verdict(replay));
    if !replay.changes.is_empty() {
        replay.shown.iter().for_each(|step| text.push_str(&side_by_side(step)));
    }
    if let Some(inside) = &first.inside {
        match sample.and_then(|index| inside.samples.get(index)) {
            Some(sample) => text.push_str(&whole(sample)),
            None => text.push_str(&summary(inside)),
        }
    }
    text
}

/// Returns a shown step: its comparison with the record, and what it looks like inside.
pub(super) fn step(replay: &Replay, step: &Replayed) -> String {
    let inside = step.inside.as_ref().map(summary).unwrap_or_default();
    let verdict = if replay.changes.is_empty() { proof(step) } else { String::new() };
    format!("{verdict}{inside}")
}

/// Says whether the rows are those of the record.
fn verdict(replay: &Replay) -> String {
    let mut text: String = replay.before.iter().filter(|step| !step.comparison.different.is_empty()).map(proof).collect();
    if replay.changes.is_empty() {
        text.extend(replay.shown.iter().map(proof));
    } else {
        _ = writeln!(text, "changed from this step on: {}", replay.changes.join(" "));
    }
    text
}

/// Says whether a row is that of the record.
fn proof(step: &Replayed) -> String {
    let found = &step.comparison;
    let left_out = format!("{} of time and memory are not compared", found.measured);
    match &found.different[..] {
        [] => format!("step {}: equal to the record, {} metrics byte for byte; {left_out}\n", step.step, found.compared),
        [first, ..] => {
            let value = |text: &Option<String>| text.clone().unwrap_or_else(|| "missing".to_owned());
            let (record, replayed) = (value(&first.record), value(&first.replay));
            let of = format!("{} of {} metrics", found.different.len(), found.compared);
            format!("step {}: {of} DIFFER, first {}: record {record}, replay {replayed}; {left_out}\n", step.step, first.name)
        }
    }
}

/// Returns the metrics that a change has changed.
fn side_by_side(step: &Replayed) -> String {
    let different = &step.comparison.different;
    let of = format!("{} of {} metrics change", different.len(), step.comparison.compared);
    let number = |text: &Option<String>| {
        text.as_ref().map_or_else(|| "-".to_owned(), |text| text.parse().map_or_else(|_| text.clone(), short))
    };
    let rows = different.iter().take(3 * MOST).map(|pair| {
        let change = || Some(pair.replay.as_ref()?.parse::<f64>().ok()? - pair.record.as_ref()?.parse::<f64>().ok()?);
        vec![pair.name.clone(), number(&pair.record), number(&pair.replay), change().map_or_else(|| "-".to_owned(), short)]
    });
    let heads = [&format!("step {}: {of}", step.step), "record", "replay", "change"].map(str::to_owned);
    format!("\n{}{}", table(heads.to_vec(), rows), more(different.len(), 3 * MOST, "metrics: --json has all"))
}

/// Returns the tables of samples and layers.
fn summary(inside: &ProbedStep) -> String {
    let mut order: Vec<&ProbedSample> = inside.samples.iter().collect();
    order.sort_by(|a, b| share(b).abs().total_cmp(&share(a).abs()));
    let heads =
        ["sample", "row", "score", "advantage", "tokens", "log π", "entropy", "ratio", "clipped", "‖g‖", "share", "response"];
    let samples = table(heads.map(str::to_owned).to_vec(), order.iter().take(MOST).map(|sample| line(sample)));
    let layers = inside.layers.iter().map(|layer| {
        let relative = if layer.weights > 0.0 { short(layer.change / layer.weights) } else { "-".to_owned() };
        vec![layer.layer.clone(), short(layer.change), short(layer.weights), relative]
    });
    let heads = ["layer", "‖ΔW‖", "‖W‖", "‖ΔW‖/‖W‖"].map(str::to_owned).to_vec();
    let count = inside.samples.len();
    format!(
        "\n{count} samples, the largest shares of the gradient first\n{samples}{}\n{}{}",
        more(count, MOST, "samples: --sample I shows one, --html FILE and --json all"),
        table(heads, layers.take(2 * MOST)),
        more(inside.layers.len(), 2 * MOST, "layers: --json has all"),
    )
}

fn share(sample: &ProbedSample) -> f64 {
    sample.gradients.last().and_then(|gradient| gradient.share).unwrap_or(0.0)
}

/// Returns the row of a sample. Means are over the tokens that the loss reads, at the last update that read the sample.
fn line(sample: &ProbedSample) -> Vec<String> {
    let dash = || "-".to_owned();
    let texts = &sample.texts;
    let mean = |of: &dyn Fn(&ProbedText) -> Option<Vec<f32>>| {
        let values: Vec<f32> = texts.iter().flat_map(|text| read(text, of(text))).collect();
        (!values.is_empty()).then(|| f64::from(values.iter().sum::<f32>()) / values.len() as f64).map_or_else(dash, short)
    };
    let last = |of: fn(&TokenColumns) -> Option<Vec<f32>>| move |text: &ProbedText| text.updates.last().and_then(of);
    let ratios: Vec<f32> = texts.iter().flat_map(|text| read(text, last(|columns| columns.ratio.clone())(text))).collect();
    let [least, most] = [f32::min, f32::max].map(|pick| ratios.iter().copied().reduce(pick));
    let range = match (least, most) {
        (Some(least), Some(most)) if short(f64::from(least)) == short(f64::from(most)) => short(f64::from(least)),
        (Some(least), Some(most)) => format!("{}–{}", short(f64::from(least)), short(f64::from(most))),
        _ => dash(),
    };
    let clipped = texts.iter().filter_map(|text| text.updates.last()?.clipped.as_ref()).flatten();
    let clipped = clipped.fold(None, |sum: Option<usize>, one| Some(sum.unwrap_or(0) + usize::from(*one)));
    let gradient = sample.gradients.last();
    let response = texts.iter().map(|text| text.response.as_str()).collect::<Vec<_>>().join(" | ");
    vec![
        sample.sample.to_string(),
        sample.row.to_string(),
        sample.score.map_or_else(dash, short),
        mean(&|text| text.advantage.clone()),
        texts.iter().map(|text| text.tokens.len()).sum::<usize>().to_string(),
        mean(&last(|columns| Some(columns.log_prob.clone()))),
        mean(&last(|columns| Some(columns.entropy.clone()))),
        range,
        clipped.map_or_else(dash, |count| count.to_string()),
        gradient.map_or_else(dash, |gradient| short(gradient.norm)),
        gradient.and_then(|gradient| gradient.share).map_or_else(dash, |share| format!("{:.1} %", 100.0 * share)),
        beginning_of(&printable(&response).replace('\n', "⏎"), EXCERPT),
    ]
}

/// Returns the values of a column at the tokens that the loss reads.
fn read(text: &ProbedText, column: Option<Vec<f32>>) -> Vec<f32> {
    let column = column.unwrap_or_default();
    column.into_iter().zip(&text.mask).filter(|(_, mask)| **mask != 0).map(|(value, _)| value).collect()
}

/// Returns a sample token by token.
fn whole(sample: &ProbedSample) -> String {
    let mut text = format!("\nsample {}, row {} of the training files", sample.sample, sample.row);
    if let Some(score) = sample.score {
        _ = write!(text, ": score {}", short(score));
    }
    text.push('\n');
    for (name, value) in &sample.components {
        _ = writeln!(text, "  {name}: {value}");
    }
    if !sample.ground_truth.is_null() {
        _ = writeln!(text, "ground truth: {}", printable(&sample.ground_truth.to_string()));
    }
    for gradient in &sample.gradients {
        let share = gradient.share.map_or_else(String::new, |share| format!(", {:.1} % of the gradient", 100.0 * share));
        _ = writeln!(text, "update {}: ‖g‖ {}{share}", gradient.update, short(gradient.norm));
    }
    for part in &sample.texts {
        let ended = if sample.finish.is_empty() { String::new() } else { format!(" (ended by {})", sample.finish) };
        _ = writeln!(text, "\nprompt:\n{}\nresponse{ended}:\n{}", printable(&part.prompt), printable(&part.response));
        for columns in &part.updates {
            text.push_str(&tokens(part, columns));
        }
    }
    text
}

fn tokens(part: &ProbedText, columns: &TokenColumns) -> String {
    let at = |column: Option<&Vec<f32>>, t: usize| {
        column.and_then(|column| column.get(t)).map_or_else(|| "-".to_owned(), |value| short(f64::from(*value)))
    };
    let rows = (0..part.tokens.len()).map(|t| {
        let clipped = columns.clipped.as_ref().and_then(|clipped| clipped.get(t)).copied();
        let note = match (part.mask.get(t), clipped) {
            (Some(0), _) => "not trained",
            (_, Some(1)) => "clipped",
            _ => "",
        };
        vec![
            (t + 1).to_string(),
            printable(&part.tokens[t]).replace('\n', "⏎").replace(' ', "·"),
            at(part.generated_log_prob.as_ref(), t),
            at(Some(&columns.log_prob), t),
            at(Some(&columns.entropy), t),
            at(columns.ratio.as_ref(), t),
            at(part.advantage.as_ref(), t),
            note.to_owned(),
        ]
    });
    let heads = ["#", "token", "generated log π", "log π", "entropy", "ratio", "advantage", ""].map(str::to_owned);
    format!("\nbefore update {}\n{}", columns.update, table(heads.to_vec(), rows))
}

fn more(count: usize, shown: usize, what: &str) -> String {
    if count > shown { format!("and {} more {what}\n", count - shown) } else { String::new() }
}

fn table(heads: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(terminal::columns().max(120));
    table.set_header(heads);
    rows.for_each(|row| _ = table.add_row(row));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
