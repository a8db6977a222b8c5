//! The built-in tools: one file each, selected by the class names of tool configurations.

mod calculator;
#[cfg(test)]
mod example;
mod gsm8k;
mod sandbox;
mod search;
mod settings;
mod slots;
#[cfg(test)]
mod test_server;
mod tool;
mod toolbox;

pub use calculator::evaluate;
pub(crate) use gsm8k::marked;
pub(in crate::tools) use settings::{only_known, seconds};
pub use tool::{BuiltInKind, BuiltInTool, ToolError, ToolOutput};
pub use toolbox::{BuiltInTools, SharedTool};

/// Every built-in tool.
pub static BUILT_IN: &[&BuiltInKind] = &[&calculator::CALCULATOR, &gsm8k::GSM8K, &search::SEARCH, &sandbox::SANDBOX];

/// Returns the tool with this class name; `None` for a class of the user.
pub fn find(class_name: &str) -> Option<&'static BuiltInKind> {
    BUILT_IN.iter().find(|kind| kind.class_names.contains(&class_name)).copied()
}
