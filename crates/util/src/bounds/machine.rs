//! The memory of this machine, and a check that a planned allocation fits.

use anyhow::{Result, bail};

use crate::platform;

/// Returns the largest number of bytes that this process could have: memory and swap of the machine, or the limit of a container
/// or of `ulimit -v`. `None` if unknown.
pub fn memory() -> Option<u128> {
    let swap = || u128::from(platform::swap_total().unwrap_or(0));
    let machine = platform::memory_total().map(|total| u128::from(total) + swap());
    let limit = platform::address_limit().map(u128::from);
    [machine, platform::container_limit(), limit].into_iter().flatten().min()
}

/// Refuses an allocation that exceeds this machine's memory. If the memory is unknown, refuses only what no machine has. `what`
/// describes the purpose.
///
/// # Errors
/// If the bytes cannot fit; the message has both sizes.
pub fn check_fits(bytes: u128, what: impl FnOnce() -> String) -> Result<()> {
    match memory() {
        Some(max) if bytes > max => bail!("{}: this needs {}, and this machine has {}", what(), amount(bytes), amount(max)),
        None if bytes > NO_MACHINE => bail!("{}: this needs {}", what(), amount(bytes)),
        None if bytes > WORTH_SAYING => tracing::info!("{}: the memory of this machine is not known", what()),
        _ => {}
    }
    Ok(())
}

/// More memory than any machine has.
const NO_MACHINE: u128 = 1 << 46;
const WORTH_SAYING: u128 = 1 << 32;

/// Formats bytes for people, such as `4.9 PiB`.
pub fn amount(bytes: u128) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"];
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    if value < 10.0 { format!("{value:.1} {}", units[unit]) } else { format!("{value:.0} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_that_cannot_fit_is_refused_with_both_sizes() {
        assert_eq!(
            [3 << 20, 10 << 30, 5000 << 40, u128::MAX].map(amount),
            ["3.0 MiB", "10 GiB", "4.9 PiB", "281474976710656 YiB"]
        );
        let max = memory().expect("the system says how much there is");
        assert!(max > 1 << 28 && check_fits(max / 2, String::new).is_ok());
        let error = check_fits(1 << 70, || "`n`=7".to_owned()).unwrap_err().to_string();
        assert!(error.starts_with("`n`=7: this needs 1.0 ZiB, and this machine has "), "{error}");
    }
}
