//! Handles NaN and infinite values: writes them to a file with their origin, then refuses or skips them (`trainer.on_nonfinite`).

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::Value;

use burnish_config::schema::OnNonfinite;
use burnish_util::no_follow;

/// Writes the `rows` of a mini-batch to `<dir>/nonfinite/step_<step>.jsonl`, or to `step_<step>-2.jsonl` and so on if that file
/// exists. Then follows `policy`. An empty `dir`, of a measurement, gets no file.
///
/// # Errors
/// With [`OnNonfinite::Error`] always; otherwise if the file cannot be written.
pub fn report(policy: OnNonfinite, dir: &Path, step: u64, what: &str, rows: &[Value]) -> Result<()> {
    if dir.as_os_str().is_empty() {
        bail!("{what} is not finite");
    }
    let name = |n: usize| if n == 1 { format!("step_{step}.jsonl") } else { format!("step_{step}-{n}.jsonl") };
    let (folder, mut n) = (dir.join("nonfinite"), 1);
    while folder.join(name(n)).exists() {
        n += 1;
    }
    let path = folder.join(name(n));
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    no_follow::write(&path, lines.as_bytes())?;
    let message = format!("step {step}: {what} is not finite; its inputs are in {}", path.display());
    match policy {
        OnNonfinite::Error => bail!("{message}; trainer.on_nonfinite=skip would skip it"),
        OnNonfinite::Skip => tracing::warn!("{message}; it is skipped"),
    }
    Ok(())
}
