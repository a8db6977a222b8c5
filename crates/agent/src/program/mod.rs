//! Programs that lead a conversation themselves: they call the model by OpenAI's protocol, with any client or framework. An
//! [`Inbox`] receives their requests and their end; a [`Stopwatch`] measures their own time.

mod inbox;
mod stopwatch;

pub use inbox::{Inbox, ModelRequest, ProgramEvent, ProgramHandle, ProgramResult};
pub use stopwatch::Stopwatch;
