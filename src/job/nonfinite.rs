//! A number that is NaN or infinite: written to a file with what it came from, and refused or left out (`trainer.on_nonfinite`).

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::Value;

use burnish_config::schema::OnNonfinite;
use burnish_util::fs::write_atomic;

/// Writes `rows`, what a mini-batch was made of, to `<dir>/nonfinite/step_<step>.jsonl`, or where that is there already to
/// `step_<step>-2.jsonl` and so on, and does as `policy` says.
///
/// # Errors
/// With [`OnNonfinite::Error`] always; else where the file cannot be written.
pub fn report(policy: OnNonfinite, dir: &Path, step: u64, what: &str, rows: &[Value]) -> Result<()> {
    let name = |n: usize| if n == 1 { format!("step_{step}.jsonl") } else { format!("step_{step}-{n}.jsonl") };
    let (folder, mut n) = (dir.join("nonfinite"), 1);
    while folder.join(name(n)).exists() {
        n += 1;
    }
    let path = folder.join(name(n));
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    write_atomic(&path, lines.as_bytes())?;
    let message = format!("step {step}: {what} is not finite; what it was computed from is in {}", path.display());
    match policy {
        OnNonfinite::Error => bail!("{message}; trainer.on_nonfinite=skip would leave it out"),
        OnNonfinite::Skip => tracing::warn!("{message}; it is left out"),
    }
    Ok(())
}
