//! A check before a run: continues a synthetic conversation, and compares it with a rendering of the whole.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::appended::Appended;
use super::renderer::Renderer;
use super::rules::FamilyTokenRules;

/// The text of tools and users in the synthetic conversation: letters only, so that no template or tokenizer changes it.
const CONTENT: &str = "syntheticanswer";

/// The limit in characters of a difference that a message shows.
const SHOWN: usize = 60;

/// Returns the tokens that append `new` messages to `history`, whose tokens are the ids.
type Append<'a> = &'a dyn Fn(&[Value], &[u32], &[Value]) -> Result<Appended>;

/// The parts of a continuation that the check uses.
pub(crate) struct ContinuationCheck<'a> {
    pub renderer: &'a Renderer,
    pub rules: &'a dyn FamilyTokenRules,
    /// The reason why no family's rules are used.
    pub plain: Option<&'a str>,
    pub append: Append<'a>,
}

/// A conversation to continue.
struct TestConversation {
    what: &'static str,
    history: Vec<Value>,
    new: Vec<Value>,
}

impl ContinuationCheck<'_> {
    /// Checks tool results, messages of users, or both. Returns warnings.
    pub(super) fn check(&self, tools: bool, users: bool) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        for scene in self.scenes(tools, users) {
            warnings.extend(self.continued(&scene)?);
        }
        if let (Some(why), false) = (self.plain, warnings.is_empty()) {
            let plain = "appended tokens directly follow the model's turn";
            warnings.insert(0, format!("{plain}: {why}"));
        }
        Ok(warnings)
    }

    fn scenes(&self, tools: bool, users: bool) -> Vec<TestConversation> {
        let user = || json!({"role": "user", "content": CONTENT});
        let answer = || json!({"role": "tool", "content": CONTENT});
        let calls = |count: usize| {
            let function = json!({"name": "synthetic", "arguments": self.rules.no_arguments()});
            let call = |i| json!({"id": format!("synthetic{i}"), "type": "function", "function": function});
            json!({"role": "assistant", "content": "", "tool_calls": (0..count).map(call).collect::<Vec<_>>()})
        };
        let reply = || json!({"role": "assistant", "content": "synthetic"});
        let mut scenes = Vec::new();
        if tools {
            scenes.push(TestConversation { what: "the result of a tool", history: vec![user(), calls(1)], new: vec![answer()] });
            let new = vec![answer(), answer()];
            scenes.push(TestConversation { what: "the results of two calls", history: vec![user(), calls(2)], new });
        }
        if users {
            scenes.push(TestConversation { what: "a message of the user", history: vec![user(), reply()], new: vec![user()] });
        }
        if tools && users {
            let history = vec![user(), calls(1), answer(), reply()];
            scenes.push(TestConversation {
                what: "a message of the user after the result of a tool",
                history,
                new: vec![user()],
            });
        }
        scenes
    }

    /// Continues a conversation; returns a warning if the result differs from the whole rendering.
    fn continued(&self, scene: &TestConversation) -> Result<Option<String>> {
        let TestConversation { what, history, new } = scene;
        let turn = self.turn(history);
        let ids = match &turn {
            Ok(ids) => ids.clone(),
            Err(_) => vec![self.renderer.tokenizer().eos_id()],
        };
        let appended =
            (self.append)(history, &ids, new).with_context(|| format!("{what} cannot be appended to a conversation"))?;
        let tokenizer = self.renderer.tokenizer();
        let text: String = tokenizer.decode(&appended.ids, false)?.split_whitespace().collect();
        if text.matches(CONTENT).count() < new.len() {
            bail!("{what} cannot be appended to a conversation: the chat template leaves out its text");
        }
        let begins = |why: String| Some(format!("{what}: {why}; each turn is trained in the context in which it was sampled"));
        if let Err(error) = turn {
            return Ok(begins(format!("the conversation cannot be compared with its rendering as a whole ({error:#})")));
        }
        let unchanged = ids.len().saturating_sub(appended.remove);
        let ours = [&ids[..unchanged], &appended.ids].concat();
        let expected = match self.renderer.ids(&[&history[..], new].concat(), true) {
            Ok(expected) => expected,
            Err(error) => return Ok(begins(format!("the conversation cannot be rendered as a whole ({error:#})"))),
        };
        // If a turn begins with a space, the whole conversation may have a different token at the boundary for the same text.
        if ours == expected || tokenizer.decode(&ours, false)? == tokenizer.decode(&expected, false)? {
            return Ok(None);
        }
        let same = ours.iter().zip(&expected).take_while(|(a, b)| a == b).count();
        let shown =
            |ids: &[u32]| Ok::<_, anyhow::Error>(tokenizer.decode(&ids[same..], false)?.chars().take(SHOWN).collect::<String>());
        Ok(begins(format!(
            "the conversation as a whole would have other tokens, from token {same} on {:?} in place of {:?}",
            shown(&expected)?,
            shown(&ours)?
        )))
    }

    /// Returns the tokens of a conversation up to the model's last turn, as the template renders it, including the token that
    /// ends the turn.
    fn turn(&self, history: &[Value]) -> Result<Vec<u32>> {
        let before = &history[..history.len().saturating_sub(1)];
        let tokenizer = self.renderer.tokenizer();
        let prompt = self.renderer.ids(before, true)?;
        let mut ids = self.renderer.ids(history, false)?;
        if !ids.starts_with(&prompt) {
            let (expected, opened) = (tokenizer.decode(&ids, false)?, tokenizer.decode(&prompt, false)?);
            let Some(reply) = expected.strip_prefix(&opened) else {
                bail!("the template's rendering of an assistant turn does not begin with its opening of one");
            };
            ids = [prompt.clone(), tokenizer.encode(reply)?].concat();
        }
        let ends = tokenizer.eos_ids();
        if let Some(end) = ids[prompt.len()..].iter().rposition(|id| ends.contains(id)) {
            ids.truncate(prompt.len() + end + 1);
        }
        Ok(ids)
    }
}
