//! The parts that write the prompts of conversations: tokenizer, chat template, format of calls, and the model as programs see
//! it.

use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};

use super::server::AgentServer;
use super::start::{Agents, EndpointSettings, PromptParts};
use burnish_agent::calls::{CallFormat, FORMATS, format_named, format_of_template};
use burnish_agent::endpoint::{EndpointModel, ModelMemory, PromptRenderer, RequestDefaults};
use burnish_agent::loops::TemplateTokenService;
use burnish_agent::tokens::SpecialTokenEscaper;
use burnish_data::{TemplateVariables, Tokenizer};
use burnish_util::time::unix_time;

/// Lower bound for the bytes per token of a text: whitespace and words unknown to a tokenizer can be long.
const MIN_TOKEN_BYTES: usize = 32;
/// Name of the model in the requests of programs.
const MODEL_NAME: &str = "policy";

impl Agents {
    /// Adds the parts that write prompts: the tokenizer, the variables of its template, the model's `model_type`, and its longest
    /// sequence.
    ///
    /// # Errors
    /// If the format of calls cannot be determined.
    pub(crate) fn set_prompt_parts(
        &mut self,
        tokenizer: &Tokenizer,
        variables: TemplateVariables,
        model: (&str, usize),
    ) -> Result<()> {
        let (model_type, longest) = model;
        let format = format_of(&self.format, tokenizer).with_context(|| format!("{}.multi_turn.format", self.group))?;
        self.limits.max_model_len = Some(self.limits.max_model_len.unwrap_or(longest).min(longest));
        let escaper = if self.neutralise { Some(Arc::new(SpecialTokenEscaper::new(tokenizer)?)) } else { None };
        self.limits.longest_token = tokenizer.longest_token().max(MIN_TOKEN_BYTES);
        let tokens = TemplateTokenService {
            tokenizer: tokenizer.clone(),
            model_type: model_type.to_owned(),
            format,
            ignore_in_thinking: self.ignore_in_thinking,
            escaper: escaper.clone(),
            continuations: Mutex::default(),
        };
        self.prompt = Some(PromptParts {
            tokenizer: tokenizer.clone(),
            escaper: escaper.clone(),
            variables,
            model_type: model_type.to_owned(),
            format,
            tokens: tokens.into(),
        });
        if let Some(settings) = &self.endpoint {
            self.server = Some(AgentServer::start(Arc::new(self.model(settings, tokenizer, model_type, (format, escaper))))?);
        }
        Ok(())
    }

    /// Returns the model as programs see it.
    fn model(
        &self,
        settings: &EndpointSettings,
        tokenizer: &Tokenizer,
        model_type: &str,
        (format, escaper): (&'static CallFormat, Option<Arc<SpecialTokenEscaper>>),
    ) -> EndpointModel {
        let EndpointSettings { sampling, variables, ignore_eos, stop_token_ids } = settings;
        let longest = self.limits.max_model_len.unwrap_or(usize::MAX);
        let defaults = RequestDefaults { sampling: *sampling, longest, vocab: tokenizer.vocab_size(), max: 1 };
        let further = [stop_token_ids.as_slice(), &self.stop_ids()].concat();
        EndpointModel {
            name: MODEL_NAME.to_owned(),
            model_type: model_type.to_owned(),
            renderer: PromptRenderer::new(tokenizer.clone(), variables.clone(), defaults).with_escaper(escaper),
            eos: tokenizer.stop_ids(*ignore_eos, &further),
            format: Some(format),
            ignore_in_thinking: self.ignore_in_thinking,
            created: unix_time() as u64,
            memory: ModelMemory::default(),
        }
    }

    /// Returns the tokens that end a turn in the format of calls, in addition to the tokenizer's. Skips tokens that the tokenizer
    /// lacks.
    pub fn stop_ids(&self) -> Vec<u32> {
        let of = |parts: &PromptParts| parts.format.stop.iter().filter_map(|text| parts.tokenizer.single(text).ok()).collect();
        self.prompt.as_ref().map(of).unwrap_or_default()
    }
}

/// Returns the format of this name; `auto` detects it in the chat template.
///
/// # Errors
/// If no format has the name, or the template shows no format.
fn format_of(name: &str, tokenizer: &Tokenizer) -> Result<&'static CallFormat> {
    if name != "auto" {
        return format_named(name).with_context(|| format!("unknown format {name}"));
    }
    format_of_template(|sign| tokenizer.template_has(sign)).with_context(|| {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        format!("auto: the chat template shows no format of calls; write one of {}", names.join(", "))
    })
}
