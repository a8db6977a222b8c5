//! The processes that run tools, users and environments from users' Python files, one per conversation that needs one.
//!
//! A [`Host`] is a process that loads the files once and creates everything that conversations share. The process of a
//! conversation ([`Session`]) is forked from it when first needed. If forked processes would share something that the files
//! opened, such as a connection, each process loads the files itself ([`StartMethod`]). So each conversation keeps its own state.
//! A hang, a crash or an endless allocation affects only its conversation, and it makes no difference which conversations run at
//! the same time.
//!
//! The files need no changes. They may contain verl's tools, function tools, interactions and agent loops, TRL's functions and
//! environments, OpenRLHF's agents, and programs that call the model by OpenAI's protocol. If these packages are not installed,
//! substitute modules provide what the files import. The types on top of a session are [`PythonTools`], [`PythonUser`],
//! [`PythonTextEnvironment`], [`PythonEnvironment`], [`PythonLoop`] and [`PythonProgram`].

mod channel;
mod conversation;
mod environment;
mod host;
mod program;
mod python_loop;
mod setup;
mod socket;
mod starting;
mod text_environment;
mod tools;
mod user;
mod view;
mod words;

pub use conversation::{Session, TimeLimit};
pub use environment::PythonEnvironment;
pub use host::Host;
pub use program::{ApiAccess, PythonProgram};
pub use python_loop::{LoopArguments, PythonLoop};
pub use setup::{
    EnvironmentClass, Functions, OfferedEnvironment, OfferedLoop, OfferedTool, Offers, ProgramFunction, SessionOptions, Setup,
    StartMethod,
};
pub use socket::random_token;
pub use text_environment::PythonTextEnvironment;
pub use tools::{PythonTools, RowTools};
pub use user::PythonUser;
