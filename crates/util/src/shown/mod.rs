//! Text for people: output streams, hidden secrets, short numbers, quoted command lines.

pub mod excerpt;
pub mod filler;
pub mod number;
pub mod printable;
pub mod secret;
pub mod shell;
pub mod suggest;
pub mod terminal;
pub mod time;
pub mod wrap;
