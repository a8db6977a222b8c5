//! SDPO (Hübotter et al. 2026, arXiv:2601.20802): what a teacher that is the policy itself is shown of the other responses to a prompt.

/// The choice of demonstrations and feedback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepromptRules {
    /// A response with this score or more is a demonstration.
    pub success_reward_threshold: f64,
    /// True if a response is not its own demonstration.
    pub dont_reprompt_on_self_success: bool,
    pub use_successful_as_teacher: bool,
    pub include_environment_feedback: bool,
    /// True if feedback is shown only where there is no demonstration.
    pub environment_feedback_only_without_solution: bool,
}

/// The demonstration and the feedback that the teacher is shown for a response; either may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reprompt {
    /// The response that is the demonstration.
    pub solution: Option<usize>,
    pub feedback: bool,
}

impl Reprompt {
    /// Returns true if the teacher is shown more than the policy.
    pub fn shows_something(&self) -> bool {
        self.solution.is_some() || self.feedback
    }
}

/// Chooses for every response the first successful response to the same prompt, and feedback. `groups`: the prompt of each response;
/// `scores`: `None` for a response without a score; `has_feedback`: of each response's row.
pub fn reprompts(rules: &RepromptRules, groups: &[usize], scores: &[Option<f64>], has_feedback: &[bool]) -> Vec<Reprompt> {
    let succeeds = |j: usize| scores[j].is_some_and(|score| score >= rules.success_reward_threshold);
    let solution = |i: usize| {
        let others = |j: &usize| groups[*j] == groups[i] && !(rules.dont_reprompt_on_self_success && *j == i);
        (0..groups.len()).filter(|_| rules.use_successful_as_teacher).filter(others).find(|&j| succeeds(j))
    };
    let of = |i: usize| {
        let solution = solution(i);
        let hidden = rules.environment_feedback_only_without_solution && solution.is_some();
        Reprompt { solution, feedback: rules.include_environment_feedback && has_feedback[i] && !hidden }
    };
    (0..groups.len()).map(of).collect()
}

/// Returns TRL's metrics of the choice, as shares of groups or of responses.
pub fn metrics(
    rules: &RepromptRules,
    groups: &[usize],
    scores: &[Option<f64>],
    has_feedback: &[bool],
    chosen: &[Reprompt],
) -> [(&'static str, f64); 5] {
    let share = |is: &dyn Fn(usize) -> bool| (0..groups.len()).filter(|&i| is(i)).count() as f64 / groups.len().max(1) as f64;
    let mut all: Vec<usize> = groups.to_vec();
    all.sort_unstable();
    all.dedup();
    let succeeds = |i: usize| scores[i].is_some_and(|score| score >= rules.success_reward_threshold);
    let successful = all.iter().filter(|group| (0..groups.len()).any(|i| groups[i] == **group && succeeds(i))).count();
    [
        ("self_distillation/success_group_fraction", successful as f64 / all.len().max(1) as f64),
        ("self_distillation/success_sample_fraction", share(&|i| chosen[i].solution.is_some())),
        ("self_distillation/feedback_available_fraction", share(&|i| has_feedback[i])),
        ("self_distillation/feedback_used_fraction", share(&|i| chosen[i].feedback)),
        ("self_distillation/reprompt_sample_fraction", share(&|i| chosen[i].shows_something())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_other_success_is_shown() {
        let rules = RepromptRules {
            success_reward_threshold: 1.0,
            dont_reprompt_on_self_success: true,
            use_successful_as_teacher: true,
            include_environment_feedback: false,
            environment_feedback_only_without_solution: false,
        };
        let (groups, scores) = ([0, 0, 0, 1], [Some(0.0), Some(1.0), Some(1.0), Some(1.0)]);
        let found = reprompts(&rules, &groups, &scores, &[false; 4]).into_iter().map(|reprompt| reprompt.solution);
        assert_eq!(found.collect::<Vec<_>>(), [Some(1), Some(2), Some(1), None]);
    }
}
