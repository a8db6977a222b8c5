//! Programs that lead a conversation themselves: they ask the model by OpenAI's protocol, with whatever client or framework they
//! are written with. Their requests come in at an [`Inbox`], and so does their end; [`Watch`] counts the time that they take for
//! themselves.

mod inbox;
mod watch;

pub use inbox::{Desk, Inbox, News, Request, Verdict};
pub use watch::Watch;
