//! A reader that fails if a server sends too slowly. The timeout of a read alone does not end a reply of one byte every few seconds.

use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

/// The time over which the rate is measured, and the bytes that must arrive in it.
pub(super) const WINDOW: Duration = Duration::from_secs(60);
pub(super) const MIN_BYTES: u64 = 60_000;

/// A reader with a minimum rate.
pub(crate) struct Paced<R> {
    reader: R,
    window: Duration,
    began: Instant,
    received: u64,
}

impl<R: Read> Paced<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self::over(reader, WINDOW)
    }

    /// Measures the rate over another time.
    pub(super) fn over(reader: R, window: Duration) -> Self {
        Self { reader, window, began: Instant::now(), received: 0 }
    }
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.received += read as u64;
        let elapsed = self.began.elapsed();
        if read > 0 && elapsed >= self.window {
            if self.received < MIN_BYTES {
                return Err(io::Error::new(ErrorKind::TimedOut, TooSlowError { bytes: self.received, elapsed }));
            }
            (self.began, self.received) = (Instant::now(), 0);
        }
        Ok(read)
    }
}

/// Error of a reply that arrives too slowly.
#[derive(Debug)]
struct TooSlowError {
    bytes: u64,
    elapsed: Duration,
}

impl std::fmt::Display for TooSlowError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "only {} bytes arrived in {} s", self.bytes, self.elapsed.as_secs())
    }
}

impl std::error::Error for TooSlowError {}

/// Returns true if a reply was ended because it arrived too slowly.
pub(crate) fn is_too_slow(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<TooSlowError>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends a number of bytes every 20 ms.
    struct Drip(usize);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            std::thread::sleep(Duration::from_millis(20));
            Ok(self.0.min(buffer.len()))
        }
    }

    #[test]
    fn a_drip_is_ended_and_a_stream_is_not() {
        for (bytes, is_ended) in [(1, true), (60_000, false)] {
            let mut paced = Paced::over(Drip(bytes), Duration::from_millis(100));
            let error = (0..20).find_map(|_| paced.read(&mut [0; 1 << 16]).err());
            assert_eq!(error.as_ref().map(is_too_slow), is_ended.then_some(true), "{bytes}: {error:?}");
        }
    }
}
