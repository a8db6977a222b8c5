//! The built-in simulated users: one file each, selected by the class names of interaction configurations.

mod gsm8k;
mod kind;

pub use kind::UserKind;

/// Every built-in user.
pub static USERS: &[&UserKind] = &[&gsm8k::GSM8K];

/// Returns the built-in user with this class name; `None` for a class written by the user.
pub fn find(class_name: &str) -> Option<&'static UserKind> {
    USERS.iter().find(|kind| kind.class_names.contains(&class_name)).copied()
}
