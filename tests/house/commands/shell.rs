//! Blocks of a page that a shell reads, and their commands.

/// A block of commands.
pub(super) struct Block<'a> {
    /// The words behind the language: `needs-gpu`, `short`.
    pub(super) marks: Vec<&'a str>,
    /// The block shows the output, too, which is compared when its commands run.
    pub(super) has_output: bool,
    pub(super) script: String,
}

/// The blocks of a page with commands. Of a console, the lines behind a prompt.
pub(super) fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut lines) = (vec![], page.lines());
    while let Some(line) = lines.next() {
        let Some(words) = line.trim_start().strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")).collect();
        let mut marks: Vec<&str> = words.trim().split(',').collect();
        let language = marks.remove(0);
        let script = match language {
            "sh" | "bash" => body.join("\n"),
            "console" => typed(&body),
            _ => continue,
        };
        blocks.push(Block { marks, has_output: language == "console", script });
    }
    blocks
}

/// The lines of a console behind a prompt, each with the lines that continue it.
fn typed(body: &[&str]) -> String {
    let mut goes_on = false;
    let mut is_typed = |line: &&&str| {
        let is_typed = goes_on || line.starts_with("$ ");
        goes_on = is_typed && line.ends_with('\\');
        is_typed
    };
    let lines: Vec<&str> = body.iter().filter(|line| is_typed(line)).map(|line| line.trim_start_matches("$ ")).collect();
    lines.join("\n")
}

/// The commands of a script, as words without quotes, redirections and comments.
pub(super) fn commands(script: &str) -> Vec<Vec<String>> {
    let script = script.replace("\\\n", " ");
    let (mut commands, mut words, mut word, mut quote) = (vec![], vec![], None::<String>, None);
    let mut letters = script.chars().peekable();
    while let Some(c) = letters.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => while letters.next_if(|c| *c != '\n').is_some() {},
            // A number before a redirection is a stream, and the word behind it a file.
            ('>' | '<', None) => {
                word = word.filter(|word| word.parse::<u8>().is_err());
                words.extend(word.take());
                while letters.next_if(|c| "&> ".contains(*c)).is_some() {}
                while letters.next_if(|c| !c.is_whitespace()).is_some() {}
            }
            (' ', None) => words.extend(word.take()),
            ('\n' | ';' | '|' | '&', None) => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    commands.push(words);
    let is_before = |word: &String| ["do", "then", "exec"].contains(&word.as_str()) || is_assignment(word);
    commands.iter_mut().for_each(|words| *words = words.iter().skip_while(|word| is_before(word)).cloned().collect());
    commands.retain(|words| !words.is_empty());
    commands
}

/// True for `NAME=value`.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}
