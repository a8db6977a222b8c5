//! The parts of a response template.

/// A response template.
pub struct ResponseTemplate {
    pub name: &'static str,
    /// Other models that use the template.
    pub aliases: &'static [&'static str],
    /// The pattern that ends the header of an assistant's turn. The prompt's text after the last match belongs to the turn.
    pub anchor: &'static str,
    pub fields: &'static [TemplateField],
    /// The token that ends a turn, which is removed from the content.
    pub eos: &'static str,
    /// Special tokens, which are removed from a turn that cannot be parsed.
    pub special: &'static [&'static str],
}

/// A field of the message.
pub struct TemplateField {
    pub name: &'static str,
    pub open: FieldStart,
    /// The pattern that ends the field.
    pub close: &'static str,
    /// True if the end of the text (before a last newline) ends the field too.
    pub(crate) end_closes: bool,
    pub read: FieldFormat,
}

/// The beginning of a field.
pub enum FieldStart {
    /// All text outside the other fields.
    Rest,
    /// A pattern; its group is the name of a function.
    Pattern(&'static str),
    /// The current position, if this text follows anywhere.
    Before(&'static str),
}

/// The format of a field's text.
pub enum FieldFormat {
    Text,
    /// The function of a call, as JSON.
    Function,
    /// The arguments of a call, as JSON.
    Json,
    /// JSON with bare keys and strings between special quote tokens (Gemma 4).
    Lax,
    /// Pairs that a pattern finds: a key and a text.
    Pairs(&'static str),
    /// Pairs of a key and a value: JSON with strings in single quotes, or else text (LFM2.5).
    Quoted(&'static str),
}
