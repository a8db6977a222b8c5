//! The services outside this process that scorers use. They are started first of all, and only if a scorer of the run may need
//! them.

use anyhow::{Result, bail};

use super::find;
use super::math_verify::MathVerify;
use super::sandbox::Sandbox;

/// The scorers and functions that compare answers by math-verify.
const MATH_VERIFY: &[&str] = &["geo3k", "prime_math", "math_verify", "accuracy_reward", "reasoning_accuracy_reward"];
/// The scorers that run programs.
const SANDBOX: &[&str] = &["sandbox_fusion"];

/// The services of a run.
#[derive(Default)]
pub struct Services {
    pub sandbox: Option<Sandbox>,
    pub math_verify: Option<MathVerify>,
}

impl Services {
    /// True if there is a service.
    pub fn any(&self) -> bool {
        self.sandbox.is_some() || self.math_verify.is_some()
    }

    /// True if the scorer or function of this name uses a service.
    pub fn asked_by(name: &str) -> bool {
        MATH_VERIFY.contains(&name) || SANDBOX.contains(&name)
    }

    /// Starts the services that the scorers of these data sources and the functions of these names need. A data source without a
    /// scorer needs none.
    ///
    /// # Errors
    /// If programs are to be run but there is no sandbox (`None`, from reward.sandbox_fusion.url being null), or if math-verify
    /// cannot be started.
    pub fn start<'a>(
        data_sources: impl IntoIterator<Item = &'a str>,
        functions: impl IntoIterator<Item = &'a str>,
        sandbox: Option<Sandbox>,
        math_verify: impl FnOnce() -> Result<MathVerify>,
    ) -> Result<Self> {
        let rules = data_sources
            .into_iter()
            .filter_map(|source| Some((find(source).ok()?.name, format!("the data source \"{source}\""))));
        let functions = functions.into_iter().map(|name| (name, format!("the reward function \"{name}\"")));
        let asked: Vec<(&str, String)> = rules.chain(functions).collect();
        let user = |users: &[&str]| asked.iter().find(|(name, _)| users.contains(name)).map(|(_, user)| user);
        if let (Some(user), None) = (user(SANDBOX), &sandbox) {
            bail!(
                "{user}: its scores are those of programs that are run, which is done by a Sandbox Fusion service and never in this \
                 process: set reward.sandbox_fusion.url, such as http://localhost:8080/run_code"
            )
        }
        let math_verify = match user(MATH_VERIFY) {
            None => None,
            Some(user) => Some(math_verify().map_err(|error| cannot_verify(user, error))?),
        };
        let programs = user(SANDBOX).is_some();
        Ok(Self { sandbox: sandbox.filter(|_| programs), math_verify })
    }
}

fn cannot_verify(user: &str, error: anyhow::Error) -> anyhow::Error {
    let missing = ["math_verify", "latex2sympy2_extended"]
        .iter()
        .any(|name| format!("{error:#}").contains(&format!("No module named '{name}")));
    let what = format!("{user}: answers that are no plain numbers are compared by math-verify");
    match missing {
        true => anyhow::anyhow!("{what}, which the interpreter reward.python cannot import: pip install math-verify"),
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
        let told = error(&["openai/gsm8k", "taco"], &[], "");
        assert!(told.starts_with("the data source \"taco\"") && told.contains("set reward.sandbox_fusion.url"), "{told}");
        let told = error(&["numina_olympiads"], &[], "ModuleNotFoundError: No module named 'math_verify'");
        assert!(told.starts_with("the data source \"numina_olympiads\"") && told.ends_with("pip install math-verify"), "{told}");
        let told = error(&[], &["accuracy_reward"], "no such file");
        assert!(told.starts_with("the reward function \"accuracy_reward\"") && told.ends_with("no such file"), "{told}");
        let unasked = Services::start(["openai/gsm8k", "mine"], ["reward_model"], None, || bail!("asked for nothing"));
        assert!(unasked.is_ok_and(|services| services.math_verify.is_none()));
    }
}
