//! Facts about the rows of reinforcement learning: their form, the tags at their ends, the lengths of right answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::inputs::TrainerInputs;
use crate::job::plan_facts::ChatForm;
use burnish_config::PpoConfig;
use burnish_data::Prompt;
use burnish_doctor::{AnswerLengths, KnownPrompt, TagInPrompts};
use burnish_reward::Tagged;
use burnish_util::foreign;

/// Longest text that is taken for an answer, and not for tests, a rubric or a solution.
const ANSWER: usize = 100;

/// Returns the prompts with their form. A text that has the template's marks counts as a conversation.
pub(super) fn known_prompts(prompts: &[Arc<Prompt>], form: &ChatForm) -> Vec<KnownPrompt> {
    let known = |prompt: &Arc<Prompt>| KnownPrompt {
        text: prompt.text.clone(),
        is_plain_text: !prompt.conversational && !form.is_in(&prompt.ids),
    };
    prompts.iter().map(known).collect()
}

/// Counts the prompts that end with a tag which a reward function expects in the response.
pub(super) fn tags(config: &PpoConfig, inputs: &TrainerInputs) -> Vec<TagInPrompts> {
    let mut counts: BTreeMap<Tagged, [usize; 2]> = BTreeMap::new();
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for prompt in &inputs.train {
        for tagged in inputs.rewards.tagged(&prompt.data_source) {
            let [all, ending] = counts.entry(tagged.clone()).or_default();
            *all += 1;
            *ending += usize::from(prompt.text.trim_end().ends_with(tagged.tag));
        }
        if let Some(tag) = last_tag(&prompt.text) {
            *last.entry(tag).or_default() += 1;
        }
    }
    let known = counts.into_iter().map(|(Tagged { function, tag, is_prefilled }, [all, ending])| TagInPrompts {
        function,
        tag: tag.to_owned(),
        is_prefilled,
        is_guess: false,
        ending,
        all,
    });
    // Functions of the user may look for the tag, too.
    let custom = &config.custom_reward_function;
    let code = custom.path.as_ref().and_then(|path| foreign::read_text(path.as_path(), foreign::SETTINGS).ok());
    let guessed = last.into_iter().filter(|(tag, _)| code.as_ref().is_some_and(|code| code.contains(tag)));
    let guessed = guessed.map(|(tag, ending)| TagInPrompts {
        function: custom.name.to_vec().join(", "),
        tag: tag.to_owned(),
        is_prefilled: false,
        is_guess: true,
        ending,
        all: inputs.train.len(),
    });
    known.chain(guessed).collect()
}

/// Returns a tag such as `<think>` at the end of a text.
fn last_tag(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let tag = &text[text.rfind('<')?..];
    let name = tag.strip_prefix('<')?.strip_suffix('>')?;
    (!name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(tag)
}

/// Compares the tokens of ground truths that look like an answer with the limit of a response; `None` without such rows.
pub(super) fn answers(config: &PpoConfig, inputs: &TrainerInputs) -> Option<AnswerLengths> {
    let limit = config.data.max_response_length;
    let length = |prompt: &Arc<Prompt>| {
        let text = match &prompt.ground_truth {
            Value::String(text) if text.len() <= ANSWER && !text.contains(['\n', '{', '[']) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        inputs.tokenizer.encode(&text).ok().map(|ids| ids.len()).filter(|length| *length > 0)
    };
    let lengths: Vec<usize> = inputs.train.iter().filter_map(length).collect();
    let longest = lengths.iter().copied().max()?;
    let too_long = lengths.iter().filter(|length| **length > limit).count();
    let without_end = lengths.iter().filter(|length| **length == limit).count();
    Some(AnswerLengths { too_long, without_end, all: lengths.len(), longest, limit })
}
