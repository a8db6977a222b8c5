//! The log `run-ID.wandb` of W&B's client: a protobuf message per record.

use std::path::Path;

use anyhow::{Result, ensure};
use burnish_tracking::wandb_records;
use burnish_util::foreign;
use burnish_util::json_number;
use burnish_util::protobuf::{WireValue, bytes_of, fields};

use super::lenient::{self, RECORD};
use crate::evidence::MetricRow;

/// Field of a record that holds a row of metrics.
const HISTORY: u64 = 2;

/// Returns the rows of a log, in order. An incomplete last record, of a run that is active, is left out.
///
/// # Errors
/// If the file cannot be read or has another form.
pub(super) fn rows(path: &Path) -> Result<Vec<MetricRow>> {
    let bytes = foreign::read(path, RECORD)?;
    ensure!(bytes.starts_with(b":W&B"), "{} is not a log of W&B's client", path.display());
    Ok(wandb_records(&bytes).filter_map(|(_, record)| row(bytes_of(&record, HISTORY)?)).collect())
}

/// Reads a row: items with a name, or the parts of one, and a value in JSON; the step is another field, or an item.
fn row(history: &[u8]) -> Option<MetricRow> {
    let mut row = MetricRow::default();
    for (field, value) in fields(history) {
        let (1, WireValue::Bytes(item)) = (field, value) else { continue };
        let parts = fields(item).filter_map(|(field, value)| match value {
            WireValue::Bytes(text) if field <= 2 => std::str::from_utf8(text).ok(),
            _ => None,
        });
        let name = parts.collect::<Vec<_>>().join(".");
        let json = std::str::from_utf8(bytes_of(item, 16)?).ok()?;
        if let Some(number) = lenient::parse(json).ok().and_then(|value| json_number::from_value(&value)) {
            row.values.insert(name, number);
        }
    }
    let of_field = bytes_of(history, 2).and_then(|step| match fields(step).next() {
        Some((1, WireValue::Varint(step))) => Some(step),
        _ => None,
    });
    row.step = of_field.or_else(|| row.values.get("_step").map(|step| *step as u64))?;
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log that the tests of the tracker compare with W&B's own client.
    #[test]
    fn a_log_of_the_client_has_rows() {
        let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tracking/src/wandb/fixture.wandb");
        let rows = rows(&log).unwrap();
        assert!(!rows.is_empty() && rows.iter().all(|row| !row.values.is_empty()), "{rows:?}");
    }
}
