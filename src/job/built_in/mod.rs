//! Models, rows and programs that are built into the program: the folders of the small tasks and of their recipes. A path that
//! does not exist and lies in one of these folders leads to a copy, which is written when a run first reads it.

mod copy;
mod find;
mod folders;

pub(crate) use find::{find, is_built_in, or_built_in, replace_files};
