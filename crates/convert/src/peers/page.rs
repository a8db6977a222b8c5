//! Renders the table of a library for its documentation page.

use super::draft::in_section;
use super::edition;
use super::options::PeerOptions;
use super::peer::{OptionTreatment, Peer, TreatmentRow};
use super::schedule;
use burnish_config::compat::Kind;
use std::collections::BTreeSet;

/// Returns Markdown tables: counts of options by command and treatment; the treatment of every option; the schedules.
pub fn page(peer: &Peer) -> String {
    let options = (peer.options)();
    let mut page = String::from("| command | releases | options | settings | ignored | refused |\n|---|---|---|---|---|---|\n");
    for trainer in peer.trainers {
        let of = options.of(trainer.name);
        let treatments: Vec<OptionTreatment> = of.filter_map(|option| peer.treatment(trainer.name, option.name)).collect();
        let count = |is: fn(&OptionTreatment) -> bool| treatments.iter().filter(|treatment| is(treatment)).count();
        let mut editions = options.editions(trainer.name);
        let (first, last) = (editions.next().unwrap_or(0), editions.next_back().unwrap_or(0));
        page.push_str(&format!(
            "| `{}` | {} to {} | {} | {} | {} | {} |\n",
            trainer.name,
            options.first_release(first),
            options.release(last),
            treatments.len(),
            count(|treatment| matches!(treatment, OptionTreatment::Key(_) | OptionTreatment::Read(_))),
            count(|treatment| matches!(treatment, OptionTreatment::Ignored(_))),
            count(|treatment| matches!(treatment, OptionTreatment::Refused(_))),
        ));
    }
    page.push_str(&format!("\n| {} | Commands | Releases | Here |\n|---|---|---|---|\n", peer.name));
    for row in peer.rows.iter().copied().flatten() {
        page.push_str(&line(peer, options, row));
    }
    page + "\n### Schedules\n\n" + &schedule::table()
}

fn line(peer: &Peer, options: &PeerOptions, (names, commands, treatment): &TreatmentRow) -> String {
    let names: Vec<&str> = names.split(' ').collect();
    let concerned = |trainer: &&str| commands.is_empty() || commands.split(' ').any(|name| name == *trainer);
    let trainers: Vec<&str> = peer.trainers.iter().map(|trainer| trainer.name).filter(concerned).collect();
    let has = |trainer: &str| names.iter().any(|name| options.find(trainer, name).is_some());
    let shown: Vec<&str> = trainers.iter().copied().filter(|name| has(name)).collect();
    let releases = |name: &&str| {
        let rows = || shown.iter().filter_map(|trainer| options.find(trainer, name));
        let everywhere = rows().all(|row| row.editions().eq(options.editions(row.trainer)));
        let editions: BTreeSet<usize> = rows().flat_map(|row| row.editions()).collect();
        let last = options.editions(shown.first().copied().unwrap_or_default()).next_back();
        if everywhere { String::new() } else { edition::range(options, editions.first(), editions.last(), last) }
    };
    let mut spans: Vec<String> = names.iter().map(releases).collect();
    spans.dedup();
    let releases = if let [one] = spans.as_slice() {
        one.clone()
    } else {
        spans.iter().map(|span| if span.is_empty() { "all" } else { span }).collect::<Vec<_>>().join("; ")
    };
    let all_commands = shown.len() == peer.trainers.len();
    let here = match treatment {
        OptionTreatment::Key(key) => written(peer, &shown, key),
        OptionTreatment::Read(text) => text.to_string(),
        OptionTreatment::Ignored(reason) => format!("ignored: {reason}"),
        OptionTreatment::Refused(reason) => format!("refused if changed: {reason}"),
    };
    format!(
        "| {} | {} | {} | {} |\n",
        names.iter().map(|name| format!("`--{name}`")).collect::<Vec<_>>().join(", "),
        if all_commands { String::new() } else { shown.join(", ") },
        releases,
        here.replace('|', "\\|"),
    )
}

/// Returns a key, with the section that these commands use.
fn written(peer: &Peer, shown: &[&str], key: &str) -> String {
    let is_stage = |name: &&str| peer.trainer(name).is_some_and(|trainer| trainer.kind != Kind::Rl);
    let full = |stage: bool| format!("`{}`", in_section(key, stage));
    match (shown.iter().any(is_stage), shown.iter().all(is_stage)) {
        (_, true) => full(true),
        (true, false) if full(true) != full(false) => format!("{}, in other stages {}", full(false), full(true)),
        _ => full(false),
    }
}
