//! What a response template is made of.

/// A template.
pub struct Template {
    pub name: &'static str,
    /// The models that it also is for.
    pub aliases: &'static [&'static str],
    /// The pattern that ends the header of an assistant's turn. What the prompt has behind the last one belongs to the turn.
    pub anchor: &'static str,
    pub fields: &'static [Field],
    /// The token that ends a turn, which is removed from the content.
    pub eos: &'static str,
    /// Special tokens, which a turn that cannot be read is shown without.
    pub special: &'static [&'static str],
}

/// A part of the message.
pub struct Field {
    pub name: &'static str,
    pub open: Open,
    /// The pattern that ends it.
    pub close: &'static str,
    /// True if the end of the text (before a last newline) is such an end too.
    pub end_closes: bool,
    pub read: Read,
}

/// What begins a field.
pub enum Open {
    /// Everything that is in no other field.
    Rest,
    /// A pattern; its group is the name of a function.
    Pattern(&'static str),
    /// Nothing, if the text goes on with this somewhere.
    Before(&'static str),
}

/// How the text of a field is read.
pub enum Read {
    Text,
    /// The function of a call, as JSON.
    Function,
    /// The arguments of a call as JSON.
    Json,
    /// As JSON with bare keys and strings between tokens of their own (Gemma 4).
    Lax,
    /// As pairs that a pattern finds: a key and a text.
    Pairs(&'static str),
    /// As pairs of a key and a value: JSON with strings in single quotes, or else text (LFM2.5).
    Quoted(&'static str),
}
