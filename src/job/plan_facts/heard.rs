//! Listens to what a start logs: its warnings, and the rows that it changes.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::subscriber::with_default;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

use burnish_data::CHANGED_ROWS;
use burnish_doctor::ChangedRows;

/// The warnings and changed rows that a start has logged.
#[derive(Default)]
pub(crate) struct Heard {
    /// Warnings that no check of the doctor repeats.
    pub warnings: Vec<String>,
    pub rows: Vec<ChangedRows>,
}

/// Parts of warnings whose facts have their own check.
const CHECKED: &[&str] = &[".prefilled=true", "(data.max_prompt_length)", "the same special token twice"];

/// Does some work. Its events on this thread are not printed but returned.
pub(crate) fn listen<T>(work: impl FnOnce() -> T) -> (T, Heard) {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let result = with_default(registry().with(Listener(heard.clone())), work);
    let mut heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    let Heard { warnings, rows } = &mut heard;
    let is_checked = |warning: &String| {
        CHECKED.iter().any(|part| warning.contains(part)) || rows.iter().any(|rows| warning.contains(&rows.reason))
    };
    warnings.retain(|warning| !is_checked(warning));
    (result, heard)
}

struct Listener(Arc<Mutex<Heard>>);

impl<S: Subscriber> Layer<S> for Listener {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event.metadata() {
            metadata if metadata.target() == CHANGED_ROWS => heard.rows.push(ChangedRows {
                reason: fields.text("reason"),
                count: fields.text("count").parse().unwrap_or_default(),
                all: fields.text("all").parse().unwrap_or_default(),
                first: fields.text("first"),
                left_out: fields.text("left_out") == "true",
            }),
            metadata if *metadata.level() == Level::WARN => {
                let message = fields.text("message");
                if !heard.warnings.contains(&message) {
                    heard.warnings.push(message);
                }
            }
            _ => {}
        }
    }
}

/// The fields of an event as texts.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn text(&self, name: &str) -> String {
        self.0.iter().find(|(known, _)| *known == name).map_or_else(String::new, |(_, text)| text.clone())
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}
