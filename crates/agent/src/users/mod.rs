//! The simulated users of this program: one file each, found by the class names that interaction configurations have.

mod gsm8k;
mod kind;

pub use kind::Kind;

/// Every built-in user.
pub static USERS: &[&Kind] = &[&gsm8k::GSM8K];

/// The user that `class_name` stands for; `None` if it is a class of the user's own.
pub fn find(class_name: &str) -> Option<&'static Kind> {
    USERS.iter().find(|kind| kind.class_names.contains(&class_name)).copied()
}
