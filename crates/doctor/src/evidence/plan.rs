//! Facts about a configuration, which are known before its run: lengths, tokens, learning rates, samples.

/// Facts about a configuration. An empty list or `None` means unknown, or without a meaning for this kind of training.
#[derive(Debug, Default)]
pub struct PlanFacts {
    /// Number of the model's parameters.
    pub parameters: Option<usize>,
    /// An adapter is trained in place of the model.
    pub has_adapter: bool,
    /// The model begins with random weights.
    pub is_random: bool,
    /// Steps of the run.
    pub steps: u64,
    /// The schedule of each trained model.
    pub rates: Vec<RatePlan>,
    /// The advantage of a response compares it with other responses to its prompt.
    pub compares_groups: bool,
    /// First tokens of the sequences.
    pub begins: Option<BeginTokens>,
    /// Last tokens of responses.
    pub ends: Option<EndTokens>,
    /// Tags that a reward function expects at the beginning of a response.
    pub tags: Vec<TagInPrompts>,
    /// Rows that are shortened or left out, by reason.
    pub changed_rows: Vec<ChangedRows>,
    /// Lengths of the right answers.
    pub answers: Option<AnswerLengths>,
    /// Training rows that occur in validation too.
    pub shared_rows: Option<SharedRows>,
    /// Warnings of the start of a run, about settings without effect and others.
    pub warnings: Vec<String>,
    /// Responses to the first prompts; `None` without sampling.
    pub samples: Option<SampledGroups>,
    /// The first rows as the model reads them.
    pub shown: Vec<ShownRow>,
}

/// The learning rates of a trained model.
#[derive(Debug)]
pub struct RatePlan {
    /// Key of its settings, such as `actor_rollout_ref.actor.optim`.
    pub section: String,
    /// Name of the optimizer.
    pub optimizer: String,
    /// The rate in the settings.
    pub lr: f64,
    /// The highest rate of the run, with its schedule.
    pub highest: f64,
    /// Steps of warm-up.
    pub warmup: usize,
    /// The known range of rates holds for this model.
    pub has_known_range: bool,
}

/// First tokens of the sequences.
#[derive(Debug, Default)]
pub struct BeginTokens {
    /// Text of the token that the tokenizer writes before a text; `None` if it writes none.
    pub token: Option<String>,
    /// Sequences that begin with it twice.
    pub doubled: usize,
    /// Sequences without it.
    pub missing: usize,
    /// All sequences.
    pub all: usize,
}

/// The tokens that end a response.
#[derive(Debug, Default)]
pub struct EndTokens {
    /// Responses are generated, in contrast to given ones.
    pub generates: bool,
    /// The setting `ignore_eos`.
    pub ignores_eos: bool,
    /// Texts of the tokens that end a response.
    pub stops: Vec<String>,
    /// A stop text ends a response.
    pub has_stop_text: bool,
    /// Text of the token with which the chat template closes a turn, if the rows are conversations.
    pub turn_end: Option<String>,
    /// The template's token is one of the stop tokens.
    pub stops_at_turn_end: bool,
    /// Stop tokens for which the model has no output.
    pub beyond_vocabulary: Vec<String>,
    /// Settings about tokens forbid every stop token.
    pub are_forbidden: bool,
    /// Least tokens of a response, and most.
    pub limits: (usize, usize),
    /// Given responses without a trained end token, of all.
    pub unended: (usize, usize),
}

/// A tag at the beginning of responses.
#[derive(Debug)]
pub struct TagInPrompts {
    /// Name of the reward function.
    pub function: String,
    /// The tag, such as `<think>`.
    pub tag: String,
    /// The function knows that the prompt has the tag.
    pub is_prefilled: bool,
    /// The function is the user's own; the tag was found in its code.
    pub is_guess: bool,
    /// Prompts that end with the tag, of all.
    pub ending: usize,
    /// All prompts of this function.
    pub all: usize,
}

/// Rows that are shortened or left out.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedRows {
    /// Reason, as a verb phrase about the rows.
    pub reason: String,
    /// Number of these rows.
    pub count: usize,
    /// Number of all rows.
    pub all: usize,
    /// File and number of the first rows.
    pub first: String,
    /// The rows are left out; otherwise they are shortened.
    pub left_out: bool,
}

/// Lengths of the right answers, in tokens.
#[derive(Debug)]
pub struct AnswerLengths {
    /// Answers that are longer than a response may be.
    pub too_long: usize,
    /// Answers that leave no room for the token that ends a response.
    pub without_end: usize,
    /// All answers.
    pub all: usize,
    /// Tokens of the longest answer.
    pub longest: usize,
    /// Most tokens of a response.
    pub limit: usize,
}

/// Rows in both files.
#[derive(Debug, Default)]
pub struct SharedRows {
    /// Validation rows that are training rows too.
    pub count: usize,
    /// All validation rows.
    pub all: usize,
    /// File and number of the first ones.
    pub first: Vec<String>,
}

/// Scores of responses to the first prompts.
#[derive(Debug, Default)]
pub struct SampledGroups {
    /// Scores of each group; `None` is a response without a score.
    pub groups: Vec<Vec<Option<f64>>>,
    /// Groups whose responses are all the same text.
    pub alike: usize,
    /// Responses that were cut at the limit.
    pub cut: usize,
    /// Calls without a score, of each reward function with weight: name, number.
    pub abstained: Vec<(String, usize)>,
    /// A response with its score, to show.
    pub example: Option<(String, Option<f64>)>,
    /// The same responses with words without meaning, up to the limit; `None` if no response leaves room for words.
    pub lengthened: Option<LengthenedResponses>,
}

/// Scores of responses alone, and with words without meaning up to the limit of a response.
#[derive(Debug, Default)]
pub struct LengthenedResponses {
    /// Those with the highest scores that leave room: score alone, score with words.
    pub best: Vec<(f64, f64)>,
    /// Those with the lowest scores.
    pub worst: Vec<(f64, f64)>,
    /// Lowest and highest score of all sampled responses.
    pub range: (f64, f64),
    /// Most tokens of a response.
    pub limit: usize,
}

/// A row as the model reads it.
#[derive(Debug)]
pub struct ShownRow {
    /// File and number of the row, or its role.
    pub title: String,
    /// Texts, and true where the tokens of the text are trained.
    pub parts: Vec<(String, bool)>,
    /// Number of tokens.
    pub tokens: usize,
    /// Number of trained tokens.
    pub trained: usize,
}
