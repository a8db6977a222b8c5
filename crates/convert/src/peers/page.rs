//! Renders the table of a library for its documentation page.

use super::draft::in_section;
use super::options::Options;
use super::peer::{OptionTreatment, Peer, TreatmentRow};
use super::schedule;
use burnish_config::compat::Kind;

/// Returns Markdown tables: counts of options by command, edition and treatment; the treatment of every option; the schedules.
pub fn page(peer: &Peer) -> String {
    let options = (peer.options)();
    let mut page = String::from("| command | edition | options | settings | ignored | refused |\n|---|---|---|---|---|---|\n");
    for trainer in peer.trainers {
        for (index, edition) in options.editions.iter().enumerate().filter(|(index, _)| options.has(trainer.name, *index)) {
            let has = options.of(trainer.name).filter(|option| option.defaults[index].is_some());
            let treatments: Vec<OptionTreatment> = has.filter_map(|option| peer.treatment(trainer.name, option.name)).collect();
            let count = |is: fn(&OptionTreatment) -> bool| treatments.iter().filter(|treatment| is(treatment)).count();
            page.push_str(&format!(
                "| `{}` | {edition} | {} | {} | {} | {} |\n",
                trainer.name,
                treatments.len(),
                count(|treatment| matches!(treatment, OptionTreatment::Key(_) | OptionTreatment::Read(_))),
                count(|treatment| matches!(treatment, OptionTreatment::Ignored(_))),
                count(|treatment| matches!(treatment, OptionTreatment::Refused(_))),
            ));
        }
    }
    page.push_str(&format!("\n| {} | Commands | Editions | Here |\n|---|---|---|---|\n", peer.name));
    for row in peer.rows.iter().copied().flatten() {
        page.push_str(&line(peer, options, row));
    }
    page + "\n### Schedules\n\n" + &schedule::table()
}

fn line(peer: &Peer, options: &Options, (names, commands, treatment): &TreatmentRow) -> String {
    let names: Vec<String> = names.split(' ').map(|name| format!("`--{name}`")).collect();
    let concerned = |trainer: &&str| commands.is_empty() || commands.split(' ').any(|name| name == *trainer);
    let bare: Vec<&str> = names.iter().map(|name| name.trim_matches('`').trim_start_matches("--")).collect();
    let has = |trainer: &str, edition: usize| {
        bare.iter().filter_map(|name| options.find(trainer, name)).any(|option| option.defaults[edition].is_some())
    };
    let trainers: Vec<&str> = peer.trainers.iter().map(|trainer| trainer.name).filter(concerned).collect();
    let everywhere = 0..options.editions.len();
    let shown: Vec<&str> = trainers.iter().copied().filter(|name| everywhere.clone().any(|edition| has(name, edition))).collect();
    let known = |edition: &usize| peer.trainers.iter().any(|trainer| options.has(trainer.name, *edition));
    let editions: Vec<&str> = everywhere
        .clone()
        .filter(|edition| shown.iter().any(|name| has(name, *edition)))
        .map(|edition| options.editions[edition])
        .collect();
    let all_commands = shown.len() == peer.trainers.len();
    let all_editions = editions.len() == everywhere.filter(known).count();
    let here = match treatment {
        OptionTreatment::Key(key) => written(peer, &shown, key),
        OptionTreatment::Read(text) => text.to_string(),
        OptionTreatment::Ignored(reason) => format!("ignored: {reason}"),
        OptionTreatment::Refused(reason) => format!("refused if changed: {reason}"),
    };
    format!(
        "| {} | {} | {} | {} |\n",
        names.join(", "),
        if all_commands { String::new() } else { shown.join(", ") },
        if all_editions { String::new() } else { editions.join(", ") },
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
