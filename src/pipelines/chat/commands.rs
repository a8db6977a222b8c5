//! The lines of a chat that begin with a slash.

use std::path::Path;

use anyhow::Result;

use super::history::ChatHistory;
use super::shown::note;
use burnish_util::suggest::did_you_mean;

/// A command of the chat.
struct ChatCommand {
    name: &'static str,
    /// Its argument in the help.
    argument: &'static str,
    doc: &'static str,
    run: fn(&mut ChatHistory, &str) -> Result<Next>,
}

/// The action after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    Quit,
}

const COMMANDS: &[ChatCommand] = &[
    ChatCommand { name: "help", argument: "", doc: "list the commands", run: |_, _| help() },
    ChatCommand {
        name: "reset",
        argument: "",
        doc: "forget all messages but the system message",
        run: |history, _| reset(history),
    },
    ChatCommand { name: "system", argument: "TEXT", doc: "set the system message; without TEXT, remove it", run: system },
    ChatCommand { name: "save", argument: "FILE", doc: "append the chat to a file as a row that trainer sft reads", run: save },
    ChatCommand { name: "quit", argument: "", doc: "end the chat, like Ctrl-D", run: |_, _| Ok(Next::Quit) },
];

/// Runs a line that begins with a slash. Returns `None` for a message; a message may begin with two slashes.
pub(super) fn run(history: &mut ChatHistory, line: &str) -> Option<Result<Next>> {
    let rest = line.strip_prefix('/').filter(|rest| !rest.starts_with('/'))?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let suggestion = did_you_mean(name, COMMANDS.iter().map(|command| command.name));
        return Some(
            note(&format!("there is no command /{name}.{suggestion} /help lists them; // begins a message with a slash"))
                .map(|()| Next::Continue),
        );
    };
    Some((command.run)(history, argument.trim()))
}

fn help() -> Result<Next> {
    for ChatCommand { name, argument, doc, .. } in COMMANDS {
        note(&format!("{:14} {doc}", format!("/{name} {argument}")))?;
    }
    note("Ctrl-C stops an answer. A line that ends in \\ continues on the next.")?;
    Ok(Next::Continue)
}

fn reset(history: &mut ChatHistory) -> Result<Next> {
    note(&format!("{} messages are forgotten", history.len()))?;
    history.truncate(0);
    Ok(Next::Continue)
}

fn system(history: &mut ChatHistory, text: &str) -> Result<Next> {
    if history.is_raw {
        note("texts are continued without messages, so a system message would have no effect")?;
        return Ok(Next::Continue);
    }
    history.system = Some(text.to_owned()).filter(|text| !text.is_empty());
    note(if history.system.is_some() {
        "the system message is set; /reset forgets the messages so far"
    } else {
        "the system message is removed"
    })?;
    Ok(Next::Continue)
}

fn save(history: &mut ChatHistory, file: &str) -> Result<Next> {
    let message = match (file, history.len()) {
        ("", _) => "write /save FILE".to_owned(),
        (_, 0) => "there are no messages to save yet".to_owned(),
        (file, count) => match history.save(Path::new(file)) {
            Ok(()) => format!("{count} messages are appended to {file} as a row"),
            Err(error) => format!("error: {error:#}"),
        },
    };
    note(&message)?;
    Ok(Next::Continue)
}
