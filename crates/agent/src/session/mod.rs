//! Processes in which the tools, users and environments of users' Python files live: one for each conversation that needs one.
//!
//! A [`Host`] is a process that loads the files once and constructs what all conversations share. For each conversation a process is forked
//! from it ([`Session`]) when it is first needed. Where the files leave what forked processes would share, such as a connection, each
//! process loads them itself ([`StartMethod`]). So a conversation keeps its own state, a hang, a crash or an allocation without end costs
//! that conversation alone, and which conversations run at the same time makes no difference to any of them.
//!
//! What the files may hold, they need not be changed for: verl's tools, function tools, interactions and agent loops, TRL's
//! functions and environments, OpenRLHF's agents, programs that ask the model by OpenAI's protocol. Where these packages are not
//! installed, modules stand in for what the files import of them. On top of a session are [`PythonTools`], [`PythonUser`],
//! [`PythonTextEnvironment`], [`PythonEnvironment`], [`PythonLoop`] and [`PythonProgram`].

mod channel;
mod conversation;
mod door;
mod environment;
mod host;
mod own_loop;
mod program;
mod seen;
mod setup;
mod starting;
mod text_environment;
mod tools;
mod user;
mod words;

pub use conversation::{Session, Time};
pub use door::word;
pub use environment::PythonEnvironment;
pub use host::Host;
pub use own_loop::{LoopOfRow, PythonLoop};
pub use program::{Access, PythonProgram};
pub use setup::{
    EnvironmentClass, Functions, OfferedEnvironment, OfferedLoop, OfferedTool, Offers, ProgramFunction, SessionOptions, Setup,
    StartMethod,
};
pub use text_environment::PythonTextEnvironment;
pub use tools::{PythonTools, ToolsOfRow};
pub use user::PythonUser;
