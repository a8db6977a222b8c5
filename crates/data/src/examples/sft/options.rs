//! The columns of supervised rows, and what of them is learnt.

use crate::examples::overlong::Overlong;
use crate::examples::row_variables::ChatColumns;
use crate::files::row_selection::RowSelection;
use crate::template::variables::TemplateVariables;

/// The options for turning rows into examples: the `data` section of `trainer sft`.
#[derive(Clone, Debug)]
pub struct SftOptions {
    pub columns: SftColumns,
    pub chat: ChatColumns,
    pub loss_mask: LossMask,
    /// True if the mask is the usual one of such rows: of a completion in which tools or users speak, what the assistant says is
    /// learnt.
    pub usual_mask: bool,
    pub assistant_mask: AssistantMask,
    /// The roles whose messages are learnt where the mask is the assistant's.
    pub loss_roles: Vec<String>,
    /// The largest number of tokens of a whole example.
    pub max_length: usize,
    pub overlong: Overlong,
    /// Further variables of the chat template.
    pub chat_kwargs: TemplateVariables,
    pub reading: RowSelection,
}

/// The columns that hold an example.
#[derive(Clone, Debug)]
pub enum SftColumns {
    /// A text.
    Text { text_key: String },
    /// A prompt and its answer, both text or both messages (TRL).
    Completion { prompt_key: String, completion_key: String },
    /// A prompt, which goes through the chat template, and its response as text (verl's SFTDataset).
    Response {
        /// The column of a list of messages, or of text, which becomes one user message.
        prompt_key: String,
        /// The keys followed inside the prompt column, outermost first; empty where the column itself is the prompt.
        prompt_dict_keys: Vec<String>,
        /// The column of the response, which is text.
        response_key: String,
        response_dict_keys: Vec<String>,
    },
    /// A conversation (verl's MultiTurnSFTDataset), also in ShareGPT's form.
    Messages {
        /// The column of a list of messages.
        messages_key: String,
    },
}

/// The parts of a row that are learnt: a token counts where every part that is named has it, and everything counts where none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossMask {
    /// What the assistant says.
    pub assistant: bool,
    /// What follows the prompt.
    pub completion: bool,
}

impl LossMask {
    /// Everything.
    pub const ALL: Self = Self { assistant: false, completion: false };
    pub const ASSISTANT: Self = Self { assistant: true, completion: false };
    pub const COMPLETION: Self = Self { assistant: false, completion: true };
}

impl SftColumns {
    /// Returns the usual mask of such rows: all of a text, the answer to a prompt, what the assistant says.
    pub fn usual_mask(&self) -> LossMask {
        match self {
            Self::Text { .. } => LossMask::ALL,
            Self::Completion { .. } | Self::Response { .. } => LossMask::COMPLETION,
            Self::Messages { .. } => LossMask::ASSISTANT,
        }
    }

    /// Returns true if the rows have what the mask names, and a way to learn it.
    pub fn has(&self, mask: LossMask) -> bool {
        match self {
            Self::Text { .. } => mask == LossMask::ALL,
            Self::Completion { .. } => true,
            Self::Response { .. } => !mask.assistant,
            Self::Messages { .. } => !mask.completion,
        }
    }
}

/// The way to find what the assistant says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssistantMask {
    /// By the template's marks where it has them, else in the rendering of the whole conversation; the beginning of a thought
    /// that the generation prompt writes belongs to the turn, as in TRL.
    Auto,
    /// By the template's `{% generation %}` marks.
    GenerationTags,
    /// In the rendering of the whole conversation; what the generation prompt writes does not belong to the turn where the whole
    /// has it, as in verl and OpenRLHF.
    Prefix,
}
