//! SDPO: the prompts of a teacher that is the policy itself, with a successful response to the same prompt and with feedback.

use std::sync::Arc;

use anyhow::{Context, Result};

use super::side::LearningSide;
use crate::trainer::batch::Batch;
use crate::trainer::batch::columns::Column;
use burnish_algorithm::reprompt::{RepromptRules, metrics, reprompts};
use burnish_config::schema::SdpoConfig;
use burnish_data::{RepromptForm, Tokenizer};
use burnish_tracking::Metrics;

impl LearningSide {
    /// Returns true if the teacher's prompts are made of the batch.
    pub(crate) fn reprompts(&self) -> bool {
        self.config.distillation.sdpo().is_some()
    }

    /// Writes the teacher's prompt of every response, and the responses that the teacher judges.
    ///
    /// # Errors
    /// If a prompt cannot be composed.
    pub(crate) fn reprompt(&self, batch: &mut Batch, tokenizer: &Tokenizer, report: &mut Metrics) -> Result<()> {
        let Some(settings) = self.config.distillation.sdpo() else { return Ok(()) };
        let rules = rules(settings);
        let feedback: Vec<Option<String>> = (0..batch.len()).map(|i| self.feedback(batch, i)).collect();
        let has_feedback: Vec<bool> = feedback.iter().map(Option::is_some).collect();
        let scores: Vec<Option<f64>> = batch.scores.iter().map(|score| score.score.map(f64::from)).collect();
        let chosen = reprompts(&rules, &batch.group, &scores, &has_feedback);
        report.extend(metrics(&rules, &batch.group, &scores, &has_feedback, &chosen));
        let form = form(settings, self.config.data.apply_chat_template_kwargs.clone().into_iter().collect());
        let mut mask = Vec::with_capacity(batch.columns().tokens());
        let mut prompts = Vec::with_capacity(batch.len());
        for (i, reprompt) in chosen.iter().enumerate() {
            let solution = reprompt.solution.map(|j| batch.texts[j].as_str());
            let feedback = feedback[i].as_deref().filter(|_| reprompt.feedback);
            let shows = reprompt.shows_something();
            let ids = shows.then(|| form.ids(batch.prompt(i), solution, feedback, tokenizer)).transpose();
            prompts.push(ids.context("distillation.sdpo")?.map(Arc::new));
            mask.resize(mask.len() + batch.tokens(i).len(), f32::from(u8::from(shows)));
        }
        batch.teacher_prompts = prompts;
        batch.set(Column::TeacherMask, mask);
        Ok(())
    }

    /// Returns the feedback of the environment in the row of a response, if it is text that is not blank.
    fn feedback(&self, batch: &Batch, trajectory: usize) -> Option<String> {
        let key = self.config.distillation.context_key()?;
        let prompt = batch.prompt(trajectory);
        let value = prompt.columns.get(key).or_else(|| prompt.extra_info.get(key))?;
        value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
    }
}

fn rules(settings: &SdpoConfig) -> RepromptRules {
    RepromptRules {
        success_reward_threshold: settings.success_reward_threshold,
        dont_reprompt_on_self_success: settings.dont_reprompt_on_self_success,
        use_successful_as_teacher: settings.use_successful_as_teacher,
        include_environment_feedback: settings.include_environment_feedback,
        environment_feedback_only_without_solution: settings.environment_feedback_only_without_solution,
    }
}

fn form(settings: &SdpoConfig, chat_kwargs: burnish_data::TemplateVariables) -> RepromptForm {
    RepromptForm {
        reprompt_template: settings.reprompt_template.clone(),
        solution_template: settings.solution_template.clone(),
        feedback_template: settings.feedback_template.clone(),
        remove_thinking: settings.remove_thinking_from_demonstration,
        max_length: settings.max_reprompt_len,
        chat_kwargs,
    }
}
