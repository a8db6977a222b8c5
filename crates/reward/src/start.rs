//! Start of the services that the scorers and functions of a run need, before anything else.

use anyhow::{Result, bail};

use super::find;
use super::functions::function;
use super::math_verify::MathVerify;
use super::sandbox::Sandbox;
use super::services::{RewardService, Services};

impl Services {
    /// Starts the services that the scorers of these data sources and the functions of these names need. A data source without a
    /// scorer needs no service.
    ///
    /// # Errors
    /// If programs have to be run but there is no sandbox (`None`, because reward.sandbox_fusion.url is null), or if math-verify
    /// cannot be started.
    pub fn start<'a>(
        data_sources: impl IntoIterator<Item = &'a str>,
        functions: impl IntoIterator<Item = &'a str>,
        sandbox: Option<Sandbox>,
        math_verify: impl FnOnce() -> Result<MathVerify>,
    ) -> Result<Self> {
        let rules = data_sources
            .into_iter()
            .filter_map(|source| Some((find(source).ok()?.needs, format!("the data source \"{source}\""))));
        let functions =
            functions.into_iter().filter_map(|name| Some((function(name)?.needs, format!("the reward function \"{name}\""))));
        let users: Vec<(&[RewardService], String)> = rules.chain(functions).collect();
        let user = |service| users.iter().find(|(needs, _)| needs.contains(&service)).map(|(_, user)| user);
        if let (Some(user), None) = (user(RewardService::Sandbox), &sandbox) {
            bail!(
                "{user} scores programs by running them in a Sandbox Fusion service, never in this process: set reward.sandbox_fusion.url, \
                 such as http://localhost:8080/run_code"
            )
        }
        let math_verify = match user(RewardService::MathVerify) {
            None => None,
            Some(user) => Some(math_verify().map_err(|error| cannot_verify(user, error))?),
        };
        let programs = user(RewardService::Sandbox).is_some();
        Ok(Self { sandbox: sandbox.filter(|_| programs), math_verify })
    }
}

/// Returns the error for math-verify that could not be started for `user`.
pub(crate) fn cannot_verify(user: &str, error: anyhow::Error) -> anyhow::Error {
    let missing = ["math_verify", "latex2sympy2_extended"]
        .iter()
        .any(|name| format!("{error:#}").contains(&format!("No module named '{name}")));
    let what = format!("{user}: answers other than plain numbers are compared by math-verify");
    match missing {
        true => anyhow::anyhow!("{what}, which is not installed for reward.python: pip install math-verify"),
        false => error.context(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(sources: &[&str], functions: &[&str], math_verify: &str) -> String {
        let start = || Err(anyhow::anyhow!("{math_verify}"));
        format!("{:#}", Services::start(sources.iter().copied(), functions.iter().copied(), None, start).err().unwrap())
    }

    #[test]
    fn what_a_run_needs_and_does_not_have_is_told_at_its_start() {
        let message = error(&["openai/gsm8k", "taco"], &[], "");
        assert!(
            message.starts_with("the data source \"taco\"") && message.contains("set reward.sandbox_fusion.url"),
            "{message}"
        );
        let message = error(&["numina_olympiads"], &[], "ModuleNotFoundError: No module named 'math_verify'");
        assert!(
            message.starts_with("the data source \"numina_olympiads\"") && message.ends_with("pip install math-verify"),
            "{message}"
        );
        let message = error(&[], &["accuracy_reward"], "no such file");
        assert!(message.starts_with("the reward function \"accuracy_reward\"") && message.ends_with("no such file"), "{message}");
        let unasked = Services::start(["openai/gsm8k", "mine"], ["reward_model"], None, || bail!("asked for nothing"));
        assert!(unasked.is_ok_and(|services| services.math_verify.is_none()));
    }
}
