//! The page of a check, which `trainer doctor --explain` prints and the documentation shows.

use super::check::Check;
use super::checks::ALARMS;
use super::diagnose::finding;
use super::phase::CheckPhase;

impl Check {
    /// Returns the name of the check in addresses and commands: lower case, with hyphens.
    pub fn id(&self) -> String {
        self.name.to_lowercase().replace(' ', "-")
    }

    /// Returns the time of the check, as a phrase.
    pub fn when(&self) -> &'static str {
        match self.phases {
            [CheckPhase::Before] => "before a run",
            [CheckPhase::After] => "from the record of a run",
            _ => "before a run, and from its record",
        }
    }

    /// Returns the page in Markdown: the meaning, an example with made-up numbers, and the list of the check's properties.
    pub fn page(&self) -> String {
        let evidence = (self.example)();
        let example = finding(self, &evidence);
        let remedy = example.remedy.as_deref().unwrap_or(self.remedy);
        let alarm = ALARMS.iter().find(|alarm| alarm.check.name == self.name);
        let list = [
            ("When", self.when()),
            ("Reads", self.reads),
            ("Number", self.number),
            ("Threshold", self.threshold),
            ("Source of the threshold", self.source),
            ("Remedy", self.remedy),
        ];
        let alarm = alarm.map(|alarm| ("Alarm while a run trains", alarm.when));
        let list: String = list
            .into_iter()
            .chain(alarm)
            .map(|(title, text)| format!("- {title}: {}\n", text.replace(['{', '}'], "`")))
            .collect();
        format!(
            "# {}\n\n{}\n\n```text\n{:4}  {}: {}\n      → {remedy}\n```\n\n{list}",
            self.name,
            self.meaning,
            example.verdict.name(),
            self.name,
            example.sentence,
        )
    }
}
