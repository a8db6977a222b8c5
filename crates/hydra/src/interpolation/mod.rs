//! `${…}`: absolute keys, relative keys (`${.x}`, `${..x}`), and functions such as `${oc.env:NAME,default}`, alone or inside a
//! longer text. The grammar and the functions follow OmegaConf.

mod clock;
mod functions;
mod limits;
mod resolve;
mod resolver;
mod syntax;
mod unresolved_calls;

pub(crate) use resolve::final_key;
pub use resolve::{resolve, resolve_but_environment, resolve_in, resolve_present, select, text};
pub use syntax::check;
