//! Adapts files and overrides written for verl: renames keys, and accepts keys that are not settings.

use super::editions::{self, EDITIONS, is_default, newest_defaults, parse};
use super::kind::Kind;
use super::patterns::fits_key;
use super::row::{KeyRow, row};
use super::table::KeyTreatment;
use super::values::{alike, below_open_mapping, is_empty_mapping};
use crate::library::LIBRARY;
use burnish_hydra::overrides::{Operation, Override};
use burnish_hydra::{Adapt, Ignored, Node, Origin, Problem, Value, inline};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

/// Settings whose null means "unset" in verl (schedules of 2025, empty entries of 2026-08 for old names): null gives them their
/// default, in files and overrides. Null in any other setting is a value or an error.
pub const NULL_IS_UNSET: &[&str] = &[
    "**.optim.lr_warmup_steps",
    "**.optim.lr_warmup_steps_ratio",
    "**.optim.min_lr_ratio",
    "**.optim.num_cycles",
    "**.optim.override_optimizer_config",
    "reward_model.enable",
    "reward_model.micro_batch_size_per_gpu",
    "custom_reward_function.name",
];

/// Settings whose null yields to a value under an old name, as in verl.
const NULL_YIELDS: &[&str] = &["**.*micro_batch_size_per_gpu"];

/// The key of the training framework of a model, and the key of the model. Megatron reads `lora.*` of the model, other frameworks
/// read `lora_rank` and its siblings.
const FRAMEWORKS: &[(&str, &str)] = &[
    ("actor_rollout_ref.actor.strategy", "actor_rollout_ref.model."),
    ("critic.strategy", "critic.model."),
    ("engine.strategy", "model."),
];

/// Megatron's names of the matrices with adapters, with our names.
const MODULES: &[(&str, &[&str])] = &[
    ("linear_qkv", &["q_proj", "k_proj", "v_proj"]),
    ("linear_proj", &["o_proj"]),
    ("linear_fc1", &["gate_proj", "up_proj"]),
    ("linear_fc2", &["down_proj"]),
    ("linear_q", &["q_proj"]),
    ("linear_k", &["k_proj"]),
    ("linear_v", &["v_proj"]),
    ("linear_fc1_gate", &["gate_proj"]),
    ("linear_fc1_up", &["up_proj"]),
];

/// Keys of the side on which a long tool result is cut, in training and in generation.
const TRUNCATE_SIDES: [&str; 2] =
    ["actor_rollout_ref.rollout.multi_turn.tool_response_truncate_side", "rollout.multi_turn.tool_response_truncate_side"];
/// The first edition with today's meaning of left and right.
const TODAYS_SIDES_SINCE: &str = "2026-08";

/// A key that was written under another name.
#[derive(Debug, Clone, PartialEq)]
pub struct Renamed {
    pub from: String,
    pub to: String,
    pub origin: Origin,
}

impl fmt::Display for Renamed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "`{}` is an old name: write `{}` ({})", self.from, self.to, self.origin)
    }
}

/// Adapts files and overrides written for verl to one kind of configuration.
pub struct VerlAdapter<'a> {
    kind: Kind,
    /// The built-in configuration as written.
    defaults: &'a Node,
    renamed: RefCell<Vec<Renamed>>,
    deleted: RefCell<Vec<(String, Origin)>>,
    /// The file of verl and its edition, if its defaults are among the files.
    preset: RefCell<Option<(String, usize)>>,
    /// The values of `lora.*` in verl's files, for models that Megatron trains.
    lora: RefCell<Vec<(String, Node)>>,
    /// The values that the user's files and overrides give under today's names.
    set_keys: RefCell<HashMap<String, Node>>,
    /// True if a later override always wins, under its old or new name, as in the conversion of a command.
    later_wins: bool,
}

impl<'a> VerlAdapter<'a> {
    pub fn new(kind: Kind, defaults: &'a Node) -> Self {
        Self {
            kind,
            defaults,
            renamed: RefCell::default(),
            deleted: RefCell::default(),
            preset: RefCell::default(),
            lora: RefCell::default(),
            set_keys: RefCell::default(),
            later_wins: false,
        }
    }

    /// Lets a later override win, under its old or new name, instead of refusing two values.
    pub fn later_wins(self) -> Self {
        Self { later_wins: true, ..self }
    }

    /// Returns the keys that were renamed so far.
    pub fn renamed(&self) -> Vec<Renamed> {
        self.renamed.borrow().clone()
    }

    /// Makes `${old.name}` resolve to the value under the new name.
    pub(crate) fn add_old_names(&self, root: &mut Node) {
        for (old, treatment) in self.kind.rows().filter(|(pattern, _)| !pattern.contains('*')) {
            if let KeyTreatment::Renamed(new) = treatment
                && root.get(old).is_none()
            {
                // In some of verl's files the new name refers to the old one.
                let last = old.rsplit('.').next().unwrap_or(old);
                let falls_back =
                    root.get(new).is_some_and(|node| matches!(&node.value, Value::Text(text) if text.contains(last)));
                let value = if falls_back { Value::Null } else { Value::Text(format!("${{{new}}}")) };
                root.put(old, Node::new(value, root.origin.clone()));
            }
        }
    }

    /// Makes `${key}` resolve to verl's newest default for unset keys that are not settings.
    pub(crate) fn add_verls_defaults(&self, root: &mut Node) {
        for (key, text) in newest_defaults(self.kind) {
            if root.get(key).is_none()
                && let Some(default) = parse(text)
            {
                root.put(key, default);
            }
        }
    }

    /// Uses `lora.*` of verl's files for models that Megatron trains.
    pub(crate) fn choose_lora(&self, root: &mut Node) {
        for (framework, model) in FRAMEWORKS {
            let strategy = root.get(framework).map(|node| &node.value);
            if !matches!(strategy, Some(Value::Text(name)) if name == "megatron") {
                continue;
            }
            for (key, value) in self.lora.borrow().iter().filter(|(key, _)| key.starts_with(model)) {
                if root.get(key).is_some_and(|node| matches!(node.origin, Origin::File { .. })) {
                    root.put(key, value.clone());
                }
            }
        }
    }

    /// Swaps left and right in the side on which a tool result is cut, for editions before verl#6313. Returns the written value
    /// for the notes.
    pub(crate) fn choose_side(&self, root: &mut Node) -> Option<Ignored> {
        let is_older = self.preset.borrow().as_ref().is_some_and(|(_, edition)| EDITIONS[*edition] < TODAYS_SIDES_SINCE);
        let key = TRUNCATE_SIDES.into_iter().find(|key| root.get(key).is_some()).filter(|_| is_older)?;
        let node = root.get_mut(key)?;
        let today = match &node.value {
            Value::Text(side) if side == "left" => "right",
            Value::Text(side) if side == "right" => "left",
            _ => return None,
        };
        let written = std::mem::replace(&mut node.value, Value::Text(today.into()));
        let reason = "left and right are swapped: verl before 0.8 names the sides the other way round";
        Some(Ignored { key: key.into(), value: inline(&written), reason })
    }

    /// Adds the built-in default of every setting that no file sets. Reports settings that an override deleted.
    pub fn fill(&self, root: &mut Node) -> Vec<Problem> {
        let deleted = self.deleted.borrow();
        let mut problems: Vec<Problem> = vec![];
        self.defaults.walk(&mut |key, default| {
            let (parent, name) = key.rsplit_once('.').unwrap_or(("", key));
            let is_missing = |node: &Node| matches!(node.value, Value::Map(_)) && node.child(name).is_none();
            if !root.get(parent).is_some_and(is_missing) || below_open_mapping(key, self.defaults) {
                return;
            }
            if let Some((_, origin)) = deleted.iter().find(|(gone, _)| gone == key) {
                let help =
                    default.value.plain_text().map_or("set its keys instead".into(), |text| format!("its default is {text}"));
                problems.push(Problem::new(key, format!("`{key}` cannot be deleted: a run needs it")).at(origin).help(help));
            }
            root.put(key, default.clone());
        });
        problems
    }

    fn row(&self, key: &str) -> Option<KeyRow> {
        row(self.kind, key, self.defaults)
    }

    fn note(&self, from: &str, to: &str, value: &Value, origin: &Origin) {
        if !is_default(self.kind, from, value) || matches!(origin, Origin::Override(_)) {
            self.renamed.borrow_mut().push(Renamed { from: from.into(), to: to.into(), origin: origin.clone() });
        }
    }

    /// Returns the new key and value of an old key; `None` if the old value is null.
    fn translated(&self, old: &str, row: &KeyRow, node: &Node) -> Option<(String, Node)> {
        let to = row.target.clone().filter(|_| node.value != Value::Null)?;
        let node = at_new_place(old, &to, node);
        Some((to, Node { value: module_names(old, node.value), ..node }))
    }

    /// True if verl's file (the newest edition if the file is unknown) has a key or section.
    fn verl_has(&self, key: &str) -> bool {
        let preset = self.preset.borrow();
        let is_part = |of: &str| of.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        editions::keys().filter(|one| is_part(one.key)).any(|one| match &*preset {
            Some((config, edition)) => one.config == config && one.defaults[*edition].is_some(),
            None => Kind::of_verl_file(one.config) == self.kind && one.defaults[EDITIONS.len() - 1].is_some(),
        })
    }

    /// Notes the file of verl that the defaults come from.
    fn note_preset(&self, origin: &Origin) {
        let Origin::File { source, .. } = origin else { return };
        let name = source.name.rsplit_once("verl/").map(|(_, name)| name.trim_end_matches(".yaml"));
        let Some((edition, config)) = name.and_then(|name| name.split_once('/')) else { return };
        let config = if config == "generation_server" { "ppo_trainer" } else { config };
        if let Some(index) = EDITIONS.iter().position(|known| *known == edition) {
            *self.preset.borrow_mut() = Some((config.to_string(), index));
        }
    }

    /// Returns the default of a setting whose null means "unset".
    fn unset(&self, key: &str, node: &Node) -> Option<Node> {
        let is_unset = node.value == Value::Null && NULL_IS_UNSET.iter().any(|pattern| fits_key(pattern, key));
        let default = self.defaults.get(key).filter(|_| is_unset)?;
        Some(Node { value: default.value.clone(), ..node.clone() })
    }

    /// Notes the values with today's names in a file of the user or in an override.
    fn note_set(&self, key: &str, node: &Node) {
        leaves(key, node, &mut |key, node| {
            if self.row(key).is_none() {
                self.set_keys.borrow_mut().insert(key.to_owned(), node.clone());
            }
        });
    }

    /// True if a value under an old name replaces the value `present` under today's name. It does not report this if both values
    /// are equal or the old value is null. A null under today's name is a value, unless it means "unset" in verl.
    ///
    /// # Errors
    /// If there are two different values.
    fn replaces_today(&self, old: (&str, &Node), new: (&str, &Node), present: &Node) -> Result<bool, Problem> {
        let ((old, set_keys), (to, value)) = (old, new);
        if set_keys.value == Value::Null || alike(&present.value, &value.value) {
            return Ok(false);
        }
        let says_nothing = NULL_YIELDS.iter().chain(NULL_IS_UNSET).any(|pattern| fits_key(pattern, to));
        if present.value == Value::Null && says_nothing {
            return Ok(true);
        }
        let message = format!("`{old}` and `{to}` are the same setting but have two values; the other is at {}", present.origin);
        Err(Problem::new(old, message).at(&set_keys.origin).help(format!("remove `{old}`")))
    }

    /// Moves the old keys of one file to their new names.
    fn rename(&self, body: &mut Node) -> Result<(), Problem> {
        let mut old = vec![];
        leaves("", body, &mut |key, node| {
            if let Some(row) = self.row(key).filter(|row| row.target.is_some()) {
                old.push((key.to_string(), row, node.clone()));
            }
        });
        let is_ours = match &body.origin {
            Origin::File { source, .. } => LIBRARY.is_built_in(source) || LIBRARY.is_copy_of_built_in(source),
            Origin::Override(_) => false,
        };
        if !is_ours {
            self.note_set("", body);
        }
        for (key, row, node) in old {
            remove(body, &key);
            let follows = matches!(&node.value, Value::Text(text) if text.contains("${"));
            if follows && is_default(self.kind, &key, &node.value) {
                continue;
            }
            let Some((to, value)) = self.translated(&key, &row, &node) else {
                self.unset_old(&key, &row, &node, body);
                continue;
            };
            let gives_way = follows || is_default(self.kind, &key, &node.value);
            if key.contains(".lora.") {
                self.lora.borrow_mut().push((to.clone(), value.clone()));
            }
            // In some of verl's files the old name has the effective value, and the new name has its default.
            let is_verls = |set_keys: &&Node| gives_way && is_default(self.kind, &to, &set_keys.value);
            let earlier = self.set_keys.borrow().get(&to).filter(|set_keys| !is_ours && !is_verls(set_keys)).cloned();
            let set_keys = body.get(&to).cloned().filter(|set_keys| !is_ours || set_keys.value != Value::Null).or(earlier);
            if let Some(set_keys) = set_keys
                && (gives_way || !self.replaces_today((&key, &node), (&to, &value), &set_keys)?)
            {
                continue;
            }
            self.note(&key, &to, &node.value, &node.origin);
            body.put(&to, value);
        }
        Ok(())
    }

    /// Handles a null under an old name: it reverts a value that another file gave under the old name, but not a value under
    /// today's name.
    fn unset_old(&self, old: &str, row: &KeyRow, node: &Node, body: &mut Node) {
        let Some(to) = &row.target else { return };
        let was_set = self.renamed.borrow().iter().any(|known| known.from == old);
        let is_set = self.set_keys.borrow().contains_key(to);
        self.note(old, to, &node.value, &node.origin);
        if let Some(default) = self.defaults.get(to).filter(|_| was_set && !is_set) {
            body.put(to, Node { value: default.value.clone(), ..node.clone() });
        }
    }

    /// Translates an override of a renamed key.
    fn renamed_override(&self, one: Override, row: &KeyRow) -> Result<Vec<Override>, Problem> {
        let Some(to) = &row.target else { return Ok(vec![]) };
        let unset = one.value.as_ref().is_none_or(|set_keys| set_keys.value == Value::Null);
        if unset {
            // Null or a deletion reverts a value that was set under the same name.
            let is_set = self.set_keys.borrow().contains_key(to);
            let was_set = !is_set && self.renamed.borrow().iter().any(|known| known.from == one.key);
            if one.operation != Operation::Delete {
                self.note(&one.key, to, &Value::Null, &one.origin);
            }
            let default = self.defaults.get(to).filter(|_| was_set).cloned();
            let back = |value| Override { operation: Operation::Force, key: to.clone(), value: Some(value), ..one.clone() };
            return Ok(default.map(back).into_iter().collect());
        }
        let Some(set_keys) = &one.value else { return Ok(vec![]) };
        let Some((key, value)) = self.translated(&one.key, row, set_keys) else { return Ok(vec![]) };
        let present = self.set_keys.borrow().get(&key).filter(|_| !self.later_wins).cloned();
        if let Some(present) = present
            && !self.replaces_today((&one.key, set_keys), (&key, &value), &present)?
        {
            return Ok(vec![]);
        }
        self.note(&one.key, &key, &set_keys.value, &one.origin);
        Ok(vec![Override { operation: Operation::Force, key, value: Some(value), ..one }])
    }

    /// Splits `key={a: 1, b: 2}`: entries that are not settings become separate overrides.
    fn mapping(&self, one: Override, root: &Node) -> Result<Vec<Override>, Problem> {
        let Some(value) = one.value.clone() else { return Ok(vec![one]) };
        let mut others = vec![];
        leaves(&one.key, &value, &mut |key, node| {
            if key != one.key && self.row(key).is_some() {
                others.push(Override {
                    operation: Operation::Force,
                    key: key.to_string(),
                    value: Some(node.clone()),
                    ..one.clone()
                });
            }
        });
        let mut rest = Node::new(Value::Map(Default::default()), one.origin.clone());
        rest.put(&one.key, value);
        others.iter().for_each(|other| remove(&mut rest, &other.key));
        let rest = rest.get(&one.key).cloned().map(|value| Override { value: Some(value), ..one });
        rest.iter().filter_map(|rest| Some((&rest.key, rest.value.as_ref()?))).for_each(|(key, value)| self.note_set(key, value));
        let others = others.into_iter().map(|other| self.overriding(other, root)).collect::<Result<Vec<_>, _>>()?;
        Ok(rest.into_iter().chain(others.into_iter().flatten()).collect())
    }
}

impl Adapt for VerlAdapter<'_> {
    fn file(&self, mut body: Node) -> Result<Node, Problem> {
        self.note_preset(&body.origin);
        self.rename(&mut body)?;
        let mut unset = vec![];
        leaves("", &body, &mut |key, node| unset.extend(self.unset(key, node).map(|node| (key.to_string(), node))));
        for (key, node) in unset {
            body.put(&key, node);
        }
        Ok(body)
    }

    fn overriding(&self, one: Override, root: &Node) -> Result<Vec<Override>, Problem> {
        if let Some(Node { value: Value::Text(engine), .. }) = &one.value
            && one.key == "model_engine"
            && engine != "dp"
        {
            let message =
                format!("`model_engine={engine}` selects other defaults (verl's {engine} files), which are not built in");
            return Err(Problem::new(&one.key, message).at(&one.origin).help(
                "`trainer from-verl` writes them into a recipe; for megatron use --config verl/2026-08/ppo_megatron_trainer",
            ));
        }
        let is_deletion = one.operation == Operation::Delete;
        let is_mapping = matches!(&one.value, Some(Node { value: Value::Map(entries), .. }) if !entries.is_empty());
        match self.row(&one.key) {
            Some(row) if row.target.is_some() => self.renamed_override(one, &row),
            _ if is_mapping && !is_deletion => self.mapping(one, root),
            Some(_) if is_deletion => Ok(root.get(&one.key).is_some().then_some(one).into_iter().collect()),
            Some(_) => Ok(vec![Override { operation: Operation::Force, ..one }]),
            None => {
                if is_deletion {
                    self.deleted.borrow_mut().push((one.key.clone(), one.origin.clone()));
                }
                if let Some(set_keys) = one.value.as_ref().filter(|_| !is_deletion) {
                    self.note_set(&one.key, set_keys);
                }
                let value = one.value.as_ref().map(|set_keys| self.unset(&one.key, set_keys).unwrap_or_else(|| set_keys.clone()));
                // verl needs `+` for keys that are missing in its file; here they have a default.
                let is_added = one.operation == Operation::Add && self.defaults.get(&one.key).is_some();
                let operation = if is_added && !self.verl_has(&one.key) { Operation::Force } else { one.operation };
                Ok(vec![Override { operation, value, ..one }])
            }
        }
    }
}

/// Translates Megatron's names of matrices with adapters; values of other keys are unchanged.
pub fn module_names(key: &str, value: Value) -> Value {
    let Value::List(items) = &value else { return value };
    if !key.ends_with(".lora.target_modules") && !key.ends_with(".lora.exclude_modules") {
        return value;
    }
    let names: Vec<&str> =
        items.iter().filter_map(|item| if let Value::Text(name) = &item.value { Some(&**name) } else { None }).collect();
    if key.ends_with(".lora.exclude_modules") && items.is_empty() {
        return Value::Null;
    }
    if ["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"].iter().all(|name| names.contains(name)) && names.len() == 4 {
        return Value::Text("all-linear".into());
    }
    let here = |item: &Node| match &item.value {
        Value::Text(name) => MODULES.iter().find(|(known, _)| known == name).map(|(_, here)| *here),
        _ => None,
    };
    let renamed = items.iter().flat_map(|item| match here(item) {
        Some(names) => names.iter().map(|name| Node { value: Value::Text((*name).into()), ..item.clone() }).collect(),
        None => vec![item.clone()],
    });
    Value::List(renamed.collect())
}

/// Moves a value to its new key: interpolations that are relative to the old key become absolute.
fn at_new_place(old: &str, new: &str, node: &Node) -> Node {
    let parents: Vec<&str> = old.split('.').collect();
    let same_parent = old.rsplit_once('.').map(|(parent, _)| parent) == new.rsplit_once('.').map(|(parent, _)| parent);
    let Value::Text(text) = &node.value else { return node.clone() };
    if same_parent || !text.contains("${") {
        return node.clone();
    }
    let mut whole = String::new();
    let mut rest = text.as_str();
    while let Some(at) = ["${.", ":."].iter().filter_map(|start| Some(rest.find(start)? + start.len() - 1)).min() {
        let dots = rest[at..].chars().take_while(|c| *c == '.').count();
        let above = &parents[..parents.len().saturating_sub(dots)];
        whole.push_str(&rest[..at]);
        whole.push_str(&above.iter().map(|part| format!("{part}.")).collect::<String>());
        rest = &rest[at + dots..];
    }
    Node { value: Value::Text(whole + rest), ..node.clone() }
}

/// Calls `visit` for every leaf below a node. Scalars, lists and empty mappings are leaves.
pub fn leaves<'a>(key: &str, node: &'a Node, visit: &mut impl FnMut(&str, &'a Node)) {
    match &node.value {
        Value::Map(entries) if !entries.is_empty() => {
            for (name, child) in entries {
                let below = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                leaves(&below, child, visit);
            }
        }
        _ => visit(key, node),
    }
}

/// Removes a key, and the mappings that become empty.
fn remove(root: &mut Node, key: &str) {
    root.remove(key);
    if let Some((parent, _)) = key.rsplit_once('.')
        && is_empty_mapping(root.get(parent))
    {
        remove(root, parent);
    }
}
