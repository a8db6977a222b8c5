//! The columns of supervised rows, and their learnt parts.

use std::ops::Range;

use crate::examples::overlong::Overlong;
use crate::examples::row_variables::ChatColumns;
use crate::files::row_selection::RowSelection;
use crate::template::variables::TemplateVariables;

/// Options for turning rows into examples: the `data` section of `trainer sft`.
#[derive(Clone, Debug)]
pub struct SftOptions {
    pub columns: SftColumns,
    pub chat: ChatColumns,
    pub loss_mask: LossMask,
    /// True if the mask is the default for these rows. Then only the assistant's turns of a multi-turn completion are learnt.
    pub usual_mask: bool,
    pub assistant_mask: AssistantMask,
    /// Roles whose messages are learnt if the mask is `assistant`.
    pub loss_roles: Vec<String>,
    /// Largest number of tokens of an example.
    pub max_length: usize,
    pub overlong: Overlong,
    /// Additional variables of the chat template.
    pub chat_kwargs: TemplateVariables,
    pub reading: RowSelection,
}

impl SftOptions {
    /// Returns the tokens that stay of an example with this number of tokens; none if the row is refused or skipped.
    pub(super) fn kept(&self, tokens: usize) -> Range<usize> {
        let max = self.max_length;
        match self.overlong {
            _ if tokens <= max => 0..tokens,
            Overlong::Error | Overlong::Filter => 0..0,
            Overlong::Left => tokens - max..tokens,
            Overlong::Right => 0..max,
        }
    }
}

/// The columns of an example.
#[derive(Clone, Debug)]
pub enum SftColumns {
    /// A plain text.
    Text { text_key: String },
    /// A prompt and its answer, both text or both messages (TRL).
    Completion { prompt_key: String, completion_key: String },
    /// A prompt for the chat template, and a response as text (verl's SFTDataset).
    Response {
        /// Column of a list of messages, or of text, which becomes one user message.
        prompt_key: String,
        /// Keys to follow inside the prompt column, outermost first; empty if the column itself is the prompt.
        prompt_dict_keys: Vec<String>,
        /// Column of the response, which is text.
        response_key: String,
        response_dict_keys: Vec<String>,
    },
    /// A conversation (verl's MultiTurnSFTDataset), also in ShareGPT's form.
    Messages {
        /// Column of a list of messages.
        messages_key: String,
    },
}

/// The learnt parts of a row: a token is learnt if it is in every named part. Without named parts, everything is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossMask {
    /// The assistant's text.
    pub assistant: bool,
    /// The text after the prompt.
    pub completion: bool,
}

impl LossMask {
    /// No named part: everything is learnt.
    pub const ALL: Self = Self { assistant: false, completion: false };
    pub const ASSISTANT: Self = Self { assistant: true, completion: false };
    pub const COMPLETION: Self = Self { assistant: false, completion: true };
}

impl SftColumns {
    /// Returns the default mask: all of a text, the answer to a prompt, or the assistant's turns of a conversation.
    pub fn usual_mask(&self) -> LossMask {
        match self {
            Self::Text { .. } => LossMask::ALL,
            Self::Completion { .. } | Self::Response { .. } => LossMask::COMPLETION,
            Self::Messages { .. } => LossMask::ASSISTANT,
        }
    }

    /// Returns true if the rows have the parts in the mask, and these can be learnt.
    pub fn has(&self, mask: LossMask) -> bool {
        match self {
            Self::Text { .. } => mask == LossMask::ALL,
            Self::Completion { .. } => true,
            Self::Response { .. } => !mask.assistant,
            Self::Messages { .. } => !mask.completion,
        }
    }
}

/// The method to find the assistant's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssistantMask {
    /// By the template's marks if it has them, otherwise in the rendered conversation. The beginning of a thought in the
    /// generation prompt belongs to the turn, as in TRL.
    Auto,
    /// By the template's `{% generation %}` marks.
    GenerationTags,
    /// In the rendered conversation. Text of the generation prompt does not belong to the turn, as in verl and OpenRLHF.
    Prefix,
}
