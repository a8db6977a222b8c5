//! `${…}`: absolute keys, relative keys (`${.x}`, `${..x}`), and functions such as `${oc.env:NAME,default}`, alone or inside a
//! longer text. The grammar and the functions are those of OmegaConf.

mod clock;
mod functions;
mod kept;
mod limits;
mod resolve;
mod resolver;
mod syntax;

pub use resolve::{place, resolve, resolve_but_environment, resolve_given, resolve_in, select, text};
pub use syntax::check;
