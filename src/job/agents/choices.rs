//! The names that settings of conversations may have.

use burnish_agent::calls::FORMATS;
use burnish_config::schema::AGENT_LOOPS;
use burnish_registry::Choice;

/// Returns the loops and the formats of calls, by the keys that name them.
pub fn choices(default_loop: &'static str, format: &'static str) -> impl Iterator<Item = Choice> {
    let loops = AGENT_LOOPS.into_iter().map(move |name| Choice::plain(default_loop, name));
    let formats = ["auto"].into_iter().chain(FORMATS.iter().map(|format| format.name));
    loops.chain(formats.map(move |name| Choice::plain(format, name)))
}
