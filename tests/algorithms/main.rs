//! From a row of data to a loss, without a model: prompts, rewards, advantages, losses and validation metrics. Most tests compare
//! values and gradients with those of verl, TRL, OpenRLHF and transformers (`tests/golden/`).

mod advantages;
mod advantages_trl_openrlhf;
mod agents;
mod cases;
mod chat_templates;
mod correction;
mod kl;
mod losses;
mod numpy;
mod offline_rows;
mod online_dpo;
mod peers_2026;
mod preferences;
mod python_estimators;
mod python_losses;
mod python_rewards;
mod ranking;
mod rewards;
mod rows_and_text;
mod schedules;
mod validation;
