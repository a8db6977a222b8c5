//! Facts about the configuration of a stage, for `trainer doctor`.

use anyhow::Result;

use super::example::StageExample;
use super::inputs::StageInputs;
use super::objective::Objective;
use super::read::find;
use super::settings::unused_options;
use crate::job::inputs::RunInputs;
use crate::job::lora_settings;
use crate::job::plan_facts::{ChatForm, begin_tokens, rate_plan, shared_rows, shown_row};
use crate::job::rank_device::rank_device;
use crate::job::sharding_plan::ShardingPlan;
use crate::job::unused_options::warn_of_unused;
use burnish_config::Loaded;
use burnish_config::schema::{ModelInit, StageConfig};
use burnish_distributed::Ranks;
use burnish_doctor::{EndTokens, Facts, KnownPrompt, PlanFacts, ShownRow};
use burnish_model::Sequence;

/// Number of rows that are shown.
const SHOWN: usize = 2;

/// Reads all inputs of a stage, and returns facts about them.
///
/// # Errors
/// Everything that a run would refuse before its models.
pub fn facts<O: Objective>(mut loaded: Loaded<O::Config>) -> Result<Facts> {
    let ranks = Ranks::alone();
    let device = rank_device(loaded.config.stage().trainer.device, &ranks);
    let RunInputs { weights, inputs, .. } = find::<O>(&mut loaded, device)?;
    weights.leave();
    let config = &loaded.config;
    let keys = config.stage();
    let sharding = ShardingPlan::new(&ranks, keys.trainer.gradient_slices, &keys.trainer.resume());
    warn_of_unused::<O::Config>(&loaded.tree, &unused_options::<O>(config, &sharding)?)?;
    let decoder = O::decoder(config)?;
    let lora = keys.model.lora();
    lora_settings::adapter(&lora, &decoder, keys.model.path.as_path(), keys.trainer.seed)?;
    let variables = keys.data.apply_chat_template_kwargs.clone().into_iter().collect();
    let form = ChatForm::find(&inputs.tokenizer, &variables);
    let is_chat = form.is_of_chat_model(inputs.tokenizer.eos_ids());
    let first = |example: &O::Example| example.sequences().first().map(whole).unwrap_or_default();
    let firsts: Vec<Vec<u32>> = inputs.train.iter().map(first).collect();
    let val: Vec<Vec<u32>> = inputs.val.iter().map(first).collect();
    // A text without marks may be right for a stage whose rows are texts.
    let has_texts = loaded.tree.value("data.text_key").is_some_and(|key| key.plain_text().is_some_and(|text| text != "null"));
    let known = |ids: &Vec<u32>| -> Result<KnownPrompt> {
        let is_plain_text = !form.is_in(ids);
        let text = if is_plain_text { inputs.tokenizer.decode(ids, false)? } else { String::new() };
        Ok(KnownPrompt { text, is_plain_text })
    };
    let plan = PlanFacts {
        parameters: Some(decoder.num_parameters()),
        has_adapter: lora.rank > 0 || lora.adapter_path.is_some(),
        is_random: keys.model.init == ModelInit::Random,
        steps: inputs.total_steps,
        rates: vec![rate_plan("optim", &keys.optim.optim(), inputs.total_steps)?],
        begins: Some(begin_tokens(&inputs.tokenizer, firsts.iter().map(Vec::as_slice))),
        ends: (O::Config::NAME != "rm").then(|| ends::<O>(&inputs, &form)),
        shared_rows: Some(shared_rows(firsts.iter(), val.iter(), |i| format!("validation row {i}"))),
        shown: shown::<O>(&inputs)?,
        ..PlanFacts::default()
    };
    Ok(Facts {
        has_chat_template: Some(is_chat && !has_texts && !form.marks.is_empty()),
        prompts: firsts.iter().map(known).collect::<Result<_>>()?,
        val_prompts: val.iter().map(known).collect::<Result<_>>()?,
        plan,
        ..Facts::default()
    })
}

fn whole(sequence: &Sequence) -> Vec<u32> {
    [sequence.prompt, sequence.response].concat()
}

/// Returns true for each predicted token of an example's sequences that is trained.
fn trained<E: StageExample>(example: &E) -> Vec<Vec<bool>> {
    let (sequences, targets) = (example.sequences(), example.targets());
    let predicted: usize = sequences.iter().map(|sequence| sequence.response.len()).sum();
    // Supervised examples have a weight for each predicted token.
    let is_trained = |at: usize| targets.len() != predicted || targets[at] != 0.0;
    let mut at = 0;
    let of = |sequence: &Sequence| {
        let start = at;
        at += sequence.response.len();
        (start..at).map(is_trained).collect()
    };
    sequences.iter().map(of).collect()
}

fn ends<O: Objective>(inputs: &StageInputs<O::Example>, form: &ChatForm) -> EndTokens {
    let ends: Vec<u32> = inputs.tokenizer.eos_ids().iter().copied().chain(form.turn_end).collect();
    let has_end = |example: &&O::Example| {
        let (sequences, trained) = (example.sequences(), trained(*example));
        let first = sequences.iter().zip(&trained).next();
        first.is_some_and(|(sequence, trained)| {
            sequence.response.iter().zip(trained).any(|(id, trained)| *trained && ends.contains(id))
        })
    };
    let all = inputs.train.len();
    let ended = inputs.train.iter().filter(has_end).count();
    let text = |id: &u32| inputs.tokenizer.decode(&[*id], false).unwrap_or_default();
    // Rows without the template's marks do not end by its token.
    let is_used =
        |id: &u32| inputs.train.iter().take(100).any(|example| example.sequences().iter().any(|one| one.response.contains(id)));
    let turn_end = form.turn_end.filter(is_used);
    EndTokens {
        stops: inputs.tokenizer.eos_ids().iter().map(text).collect(),
        turn_end: turn_end.as_ref().map(text),
        stops_at_turn_end: turn_end.is_none_or(|end| inputs.tokenizer.eos_ids().contains(&end)),
        unended: (all - ended, all),
        ..EndTokens::default()
    }
}

fn shown<O: Objective>(inputs: &StageInputs<O::Example>) -> Result<Vec<ShownRow>> {
    let mut shown = Vec::new();
    for (row, example) in inputs.train.iter().take(SHOWN).enumerate() {
        for (part, (sequence, trained)) in example.sequences().iter().zip(trained(example)).enumerate() {
            let title = if part == 0 { format!("row {row}") } else { format!("row {row}, part {}", part + 1) };
            let marks = [vec![false; sequence.prompt.len()], trained].concat();
            shown.push(shown_row(&inputs.tokenizer, title, &whole(sequence), &marks)?);
        }
    }
    Ok(shown)
}
