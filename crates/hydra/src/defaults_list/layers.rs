//! Follows the `defaults:` lists from the primary file down to one list of files, in the order in which they are merged.
//!
//! Each list is followed from its end to its start, so that `override` entries of later files apply to earlier files.

use super::entry::{DefaultsEntry, GroupOptions, Target};
use super::file::ConfigFile;
use crate::error::Problem;
use crate::interpolation;
use crate::lookup::{Inserted, SearchPath};
use crate::overrides::{Operation, Override};
use crate::provenance::{Origin, YamlSource};
use crate::suggest;
use crate::tree::{Node, Value};
use std::rc::Rc;
use std::sync::Arc;

/// A file and the package of its keys.
pub(super) struct Layer {
    pub file: Rc<ConfigFile>,
    pub package: String,
    /// The group that chose the file, if the file has no `defaults:` list.
    key: Option<(String, Origin)>,
}

/// The choice of another option than the option in the group's `defaults:` list.
struct OptionOverride {
    key: String,
    options: GroupOptions,
    origin: Origin,
    used: bool,
}

/// `~group` or `~group=option`.
struct GroupDeletion {
    key: String,
    option: Option<String>,
    origin: Origin,
    used: bool,
}

/// The groups and options that `defaults:` lists choose for Hydra itself; they have no effect.
type ForHydra = Vec<(String, GroupOptions)>;

struct Layers<'a> {
    search: &'a SearchPath,
    choices: Vec<OptionOverride>,
    deletions: Vec<GroupDeletion>,
    /// Entries of `+group=option`, appended to the primary file's list.
    appended: Vec<DefaultsEntry>,
    /// The key and the chosen option of each group.
    chosen: Vec<(String, Option<String>, Origin)>,
    reading: Vec<Arc<YamlSource>>,
    /// `group: option` entries for Hydra itself.
    hydra: ForHydra,
}

/// Lists the files that make up `primary`, and the entries for Hydra itself. `groups`: the overrides that choose group options.
pub(super) fn layers(primary: ConfigFile, search: &SearchPath, groups: &[Override]) -> Result<(Vec<Layer>, ForHydra), Problem> {
    let mut layers =
        Layers { search, choices: vec![], deletions: vec![], appended: vec![], chosen: vec![], reading: vec![], hydra: vec![] };
    for group in groups {
        layers.take_override(group)?;
    }
    let entry = DefaultsEntry::new(Target::Path(search.primary.clone()), None, false, &primary.body.origin);
    let entry = DefaultsEntry { header: primary.header.clone(), ..entry.within("", "") };
    let list = layers.file(entry, Rc::new(primary), true, false)?;
    layers.check_all_used()?;
    let mut seen: Vec<&str> = vec![];
    for (key, origin) in list.iter().filter_map(|layer| layer.key.as_ref()) {
        if seen.contains(&key.as_str()) {
            let message = format!("the group `{key}` is chosen twice");
            return Err(Problem::new("", message).at(origin).help("remove one of the entries"));
        }
        seen.push(key);
    }
    Ok((list, layers.hydra))
}

impl Layers<'_> {
    fn take_override(&mut self, one: &Override) -> Result<(), Problem> {
        let key = one.package.as_ref().map_or(one.key.clone(), |package| format!("{}@{package}", one.key));
        let options =
            one.value.as_ref().and_then(|node| GroupOptions::from_value(&node.value)).filter(|o| *o != GroupOptions::Nothing);
        let wrong = |message: String, help: &str| Err(Problem::new("", message).at(&one.origin).help(help));
        match (one.operation, options) {
            (Operation::Force, _) => {
                wrong(format!("the group `{key}` cannot be forced with ++"), "write + to add it, or no prefix to change it")
            }
            (Operation::Delete, Some(GroupOptions::Several(_))) => {
                wrong(format!("`~{key}` takes at most one option"), "write ~group or ~group=option")
            }
            (Operation::Delete, options) => {
                let option = options.map(|options| options.shown());
                self.deletions.push(GroupDeletion { key, option, origin: one.origin.clone(), used: false });
                Ok(())
            }
            (_, None) => {
                let names = self.search.options(&one.key).join(", ");
                wrong(
                    format!("`{key}` is a group, so its value must be one of its options"),
                    &format!("`{}` has: {names}\nto remove the group, write ~{key}", one.key),
                )
            }
            (Operation::Add, Some(options)) => {
                let target = Target::Group { group: one.key.clone(), options };
                self.appended.push(DefaultsEntry::new(target, one.package.clone(), false, &one.origin));
                Ok(())
            }
            (Operation::Change, Some(options)) => {
                self.choices.retain(|choice| choice.key != key);
                self.choices.push(OptionOverride { key, options, origin: one.origin.clone(), used: false });
                Ok(())
            }
        }
    }

    /// Follows one entry to its file. `late`: true below an entry whose name was an interpolation.
    fn entry(&mut self, mut entry: DefaultsEntry, late: bool) -> Result<Vec<Layer>, Problem> {
        let name = entry.name().map(str::to_string);
        let source = match &name {
            Some(name) if name != "???" => self.search.find(&entry.path(), &self.reading)?,
            _ => None,
        };
        let file = source.map(ConfigFile::read).transpose()?;
        entry.header = file.as_ref().and_then(|file| file.header.clone());
        if let Target::Group { .. } = entry.target {
            let key = entry.key();
            let matches = |one: &&mut GroupDeletion| {
                one.key == key && one.option.as_ref().is_none_or(|option| name.as_ref() == Some(option))
            };
            if let Some(deletion) = self.deletions.iter_mut().find(matches) {
                deletion.used = true;
                return Ok(vec![]);
            }
            self.note(key, &name, &entry.origin)?;
        }
        match (name, file) {
            (None, _) => Ok(vec![]),
            (Some(name), _) if name == "???" => Err(self.still_to_choose(&entry)),
            (_, Some(file)) => self.file(entry, Rc::new(file), false, late),
            (_, None) if entry.optional => Ok(vec![]),
            (_, None) => Err(self.not_found(&entry)),
        }
    }

    /// Lists a file and all files in its `defaults:` list.
    fn file(&mut self, entry: DefaultsEntry, file: Rc<ConfigFile>, is_primary: bool, late: bool) -> Result<Vec<Layer>, Problem> {
        let (folder, package) = (entry.group_path(), entry.final_package());
        let mut entries: Vec<DefaultsEntry> = file.entries.iter().map(|entry| entry.clone().within(&folder, &package)).collect();
        let appended = if is_primary { std::mem::take(&mut self.appended) } else { vec![] };
        let is_choice = |entry: &DefaultsEntry| matches!(entry.target, Target::Choice { .. });
        let has_own = entries.iter().any(|entry| matches!(entry.target, Target::Own));
        if !has_own && (entries.iter().any(|entry| !is_choice(entry)) || entries.is_empty() && !appended.is_empty()) {
            entries.push(DefaultsEntry::new(Target::Own, None, false, &file.body.origin));
        }
        entries.retain(|entry| !self.is_hydras(entry));
        self.take_choices(&entries, late)?;
        entries.extend(appended.into_iter().map(|entry| entry.within(&folder, &package)));

        let mut parts: Vec<PendingEntry> = vec![];
        self.reading.push(file.source.clone());
        for mut entry in entries.into_iter().rev().filter(|entry| !is_choice(entry)) {
            self.choose(&mut entry);
            match &entry.target {
                Target::Own => {
                    parts.push(PendingEntry::Done(vec![Layer { file: file.clone(), package: package.clone(), key: None }]))
                }
                Target::Group { group, options: GroupOptions::Several(names) } => {
                    for name in names.iter().rev() {
                        let target = Target::Path(format!("{group}/{name}"));
                        parts.push(PendingEntry::Done(self.entry(DefaultsEntry { target, ..entry.clone() }, late)?));
                    }
                }
                _ if entry.path().contains("${") => parts.push(PendingEntry::Late(entry)),
                _ => parts.push(PendingEntry::Done(self.entry(entry, late)?)),
            }
        }
        let is_leaf = parts.is_empty();
        let mut layers = vec![];
        for part in parts {
            layers.push(match part {
                PendingEntry::Done(layers) => layers,
                PendingEntry::Late(entry) => {
                    let entry = self.resolved(entry)?;
                    self.entry(entry, true)?
                }
            });
        }
        self.reading.pop();
        let inserted = self.inserted(&entry, &file, &package)?;
        let own: Vec<Layer> = match is_leaf {
            true => {
                let key = matches!(entry.target, Target::Group { .. }).then(|| (entry.key(), entry.origin.clone()));
                vec![Layer { file, package, key }]
            }
            false => layers.into_iter().rev().flatten().collect(),
        };
        let Some(inserted) = inserted else { return Ok(own) };
        // An option that the user chose for a group overrides the inserted file, too.
        let (built_in, users): (Vec<_>, Vec<_>) = own.into_iter().partition(|layer| self.is_built_in(&layer.file));
        Ok(built_in.into_iter().chain([inserted]).chain(users).collect())
    }

    fn is_built_in(&self, file: &ConfigFile) -> bool {
        let library = self.search.library;
        library.is_built_in(&file.source) || library.is_copy_of_built_in(&file.source)
    }

    /// Returns the inserted file, if it overrides this one. Its own `defaults:` list has no effect.
    fn inserted(&self, entry: &DefaultsEntry, file: &ConfigFile, package: &str) -> Result<Option<Layer>, Problem> {
        let is_above = |inserted: &&Inserted| self.is_built_in(file) && entry.path() == inserted.above;
        let inserted = self.search.inserted.as_ref().filter(is_above);
        let read = |inserted: &Inserted| ConfigFile::read(inserted.source.clone());
        let file = inserted.map(read).transpose()?;
        Ok(file.map(|file| Layer { file: Rc::new(file), package: package.to_owned(), key: None }))
    }

    /// Returns true if an entry is for Hydra itself, and notes it.
    fn is_hydras(&mut self, entry: &DefaultsEntry) -> bool {
        let (Target::Group { options, .. } | Target::Choice { options, .. }) = &entry.target else { return false };
        let is_hydras = entry.group_path().starts_with("hydra/");
        if is_hydras {
            self.hydra.push((entry.group_path(), options.clone()));
        }
        is_hydras
    }

    /// Notes the `override` entries of a list; existing choices win.
    fn take_choices(&mut self, entries: &[DefaultsEntry], late: bool) -> Result<(), Problem> {
        let mut seen = false;
        for entry in entries {
            match &entry.target {
                Target::Choice { .. } if late => {
                    let message = "a file whose name contains `${…}` cannot override groups";
                    return Err(Problem::new("defaults", message).at(&entry.origin));
                }
                Target::Choice { options, .. } => {
                    seen = true;
                    let key = entry.key();
                    if !self.choices.iter().any(|known| known.key == key) {
                        self.choices.push(OptionOverride {
                            key,
                            options: options.clone(),
                            origin: entry.origin.clone(),
                            used: false,
                        });
                    }
                }
                Target::Own => {}
                _ if seen => {
                    let message = "`override` entries must be at the end of a `defaults:` list, after this entry";
                    return Err(Problem::new("defaults", message).at(&entry.origin));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Replaces the option of an entry if another option was chosen elsewhere.
    fn choose(&mut self, entry: &mut DefaultsEntry) {
        let key = entry.key();
        if let Target::Group { options, .. } = &mut entry.target
            && let Some(choice) = self.choices.iter_mut().find(|choice| choice.key == key)
        {
            choice.used = true;
            *options = choice.options.clone();
            entry.origin = choice.origin.clone();
        }
    }

    /// Notes the chosen option of a group, which must be the same everywhere.
    fn note(&mut self, key: String, name: &Option<String>, origin: &Origin) -> Result<(), Problem> {
        match self.chosen.iter().find(|(known, ..)| *known == key) {
            Some((_, other, at)) if other != name => {
                let shown = |name: &Option<String>| name.clone().unwrap_or("null".into());
                let message = format!("the group `{key}` has the option `{}` here and `{}` at {at}", shown(name), shown(other));
                Err(Problem::new("", message)
                    .at(origin)
                    .help(format!("to choose another option, write `- override {key}: {}`", shown(other))))
            }
            Some(_) => Ok(()),
            None => {
                self.chosen.push((key, name.clone(), origin.clone()));
                Ok(())
            }
        }
    }

    /// Resolves an entry whose name contains `${…}`, which refers to the options of groups.
    fn resolved(&self, mut entry: DefaultsEntry) -> Result<DefaultsEntry, Problem> {
        let node = |value, origin: &Origin| Node::new(value, origin.clone());
        let chosen = self
            .chosen
            .iter()
            .map(|(key, name, origin)| (key.clone(), node(name.clone().map_or(Value::Null, Value::Text), origin)));
        let choices = node(Value::Map(chosen.collect()), &entry.origin);
        let resolve = |text: &str| match interpolation::text(&choices, text, &entry.origin) {
            Ok(Node { value: Value::Text(text), .. }) => Ok(text),
            Ok(_) => Err(None),
            Err(problem) => Err(Some(problem.message)),
        };
        let written = match &entry.target {
            Target::Path(path) => path.clone(),
            _ => entry.name().unwrap_or_default().to_string(),
        };
        let resolved = resolve(&written).map_err(|reason| {
            let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
            let groups: Vec<&str> = self.chosen.iter().map(|(key, ..)| key.as_str()).collect();
            Problem::new("defaults", format!("`{written}` does not name a file{reason}"))
                .at(&entry.origin)
                .help(format!("an interpolation here can only refer to the option of an earlier group: {}", groups.join(", ")))
        })?;
        match &mut entry.target {
            Target::Path(path) => *path = resolved,
            Target::Group { options, .. } | Target::Choice { options, .. } => *options = GroupOptions::One(resolved),
            Target::Own => {}
        }
        Ok(entry)
    }

    fn check_all_used(&self) -> Result<(), Problem> {
        if let Some(unused) = self.choices.iter().find(|choice| !choice.used) {
            return Err(self.no_such_group(&unused.key, &unused.origin, &unused.options.shown()));
        }
        match self.deletions.iter().find(|deletion| !deletion.used) {
            Some(unused) => match self.chosen.iter().find(|(key, ..)| *key == unused.key) {
                Some((key, name, _)) => {
                    let taken = name.as_deref().unwrap_or("null");
                    Err(Problem::new("", format!("`~{key}` names another option: the option of `{key}` is `{taken}`"))
                        .at(&unused.origin))
                }
                None => Err(self.no_such_group(&unused.key, &unused.origin, "")),
            },
            None => Ok(()),
        }
    }

    fn no_such_group(&self, key: &str, origin: &Origin, option: &str) -> Problem {
        let group = key.split('@').next().unwrap_or(key);
        let of_group = |known: &&str| known.split('@').next() == Some(group);
        let chosen: Vec<&str> = self.chosen.iter().map(|(key, ..)| key.as_str()).collect();
        let same: Vec<&str> = chosen.iter().copied().filter(of_group).collect();
        let suggestion = match same.as_slice() {
            [] => suggest::did_you_mean(suggest::closest(key, chosen.iter().copied())),
            same => Some(format!("did you mean `{}`?", same.join("` or `"))),
        };
        let add = (!option.is_empty()).then(|| format!("to add it, write +{key}={option}"));
        let help: Vec<String> = suggestion.into_iter().chain(add).collect();
        let problem = Problem::new("", format!("the group `{key}` is not in any `defaults:` list")).at(origin);
        if help.is_empty() { problem } else { problem.help(help.join("\n")) }
    }

    fn still_to_choose(&self, entry: &DefaultsEntry) -> Problem {
        let (key, group) = (entry.key(), entry.group_path());
        let options = self.search.options(&group).join(", ");
        Problem::new("", format!("an option of the group `{key}` must be chosen"))
            .at(&entry.origin)
            .help(format!("write {key}=OPTION; `{group}` has: {options}"))
    }

    fn not_found(&self, entry: &DefaultsEntry) -> Problem {
        let (path, folder) = (entry.path(), entry.group_path());
        let sources: Vec<&str> = self.reading.iter().map(|source| source.name.as_str()).collect();
        if let Some(start) = sources.iter().position(|name| name.ends_with(&format!("{path}.yaml"))) {
            let circle = sources[start..].join(" → ");
            return Problem::new("", format!("`{path}` includes itself: {circle} → {}", sources[start])).at(&entry.origin);
        }
        let options = self.search.options(&folder);
        let name = path.rsplit('/').next().unwrap_or(&path);
        let suggestion = suggest::did_you_mean(suggest::closest(name, options.iter().map(String::as_str)));
        let available = match (options.is_empty(), folder.as_str()) {
            (true, _) => format!("there is no folder `{folder}` with configuration files"),
            (false, "") => format!("available: {}", options.join(", ")),
            (false, _) => format!("`{folder}` has: {}", options.join(", ")),
        };
        let help: Vec<String> = suggestion.into_iter().chain([available]).collect();
        Problem::new("", format!("there is no configuration `{path}`")).at(&entry.origin).help(help.join("\n"))
    }
}

/// An entry with its files, or an entry that waits for the options of other groups.
enum PendingEntry {
    Done(Vec<Layer>),
    Late(DefaultsEntry),
}
