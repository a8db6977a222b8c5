//! The end of docs/debugging.md, rendered from the registry of checks of `trainer doctor`.

use burnish::doctor::{ALARMS, CHECKS, CheckPhase};

use crate::docs::{check, root};

const MARK: &str = "writes what follows. -->\n\n";

fn checks() -> String {
    let mut page = String::new();
    for one in CHECKS {
        let phase = match one.phases {
            [CheckPhase::Before] => "before a run",
            [CheckPhase::After] => "from the record of a run",
            _ => "before a run, and from its record",
        };
        page.push_str(&format!("\n### {}\n\n", one.name));
        for (title, text) in [
            ("When", phase),
            ("Reads", one.reads),
            ("Number", one.number),
            ("Threshold", one.threshold),
            ("Meaning", one.meaning),
            ("Remedy", one.remedy),
        ] {
            page.push_str(&format!("- {title}: {}\n", text.replace(['{', '}'], "`")));
        }
        if let Some(alarm) = ALARMS.iter().find(|alarm| alarm.check.name == one.name) {
            page.push_str(&format!("- Alarm while a run trains: {}\n", alarm.when));
        }
    }
    page.trim_start().to_owned()
}

#[test]
fn generated_page_of_debugging_is_up_to_date() {
    let written = std::fs::read_to_string(root().join("docs/debugging.md")).unwrap();
    let (head, _) = written.split_once(MARK).unwrap();
    check("docs/debugging.md", &format!("{head}{MARK}{}", checks()));
}
