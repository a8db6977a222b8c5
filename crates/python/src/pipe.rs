//! Pipes and sockets that do not block.

use std::io::{ErrorKind, Read, Write};

/// The largest number of bytes that are read at once.
pub const CHUNK: usize = 1 << 16;

/// Passes the available bytes to `take`, until `take` returns false. Returns false if the stream has ended or failed.
pub fn read_available(from: &mut impl Read, mut take: impl FnMut(&[u8]) -> bool) -> bool {
    let mut chunk = [0; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return false,
            Ok(count) if take(&chunk[..count]) => {}
            Ok(_) => return true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// Sends as much as the stream takes and returns the unsent rest, which is empty if the reader is gone.
pub fn send_available<'a>(to: &mut impl Write, mut bytes: &'a [u8]) -> &'a [u8] {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return &[],
        }
    }
    bytes
}
