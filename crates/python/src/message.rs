//! Messages between the trainer and a worker: a line of JSON. If the line begins with a size in bytes, columns of floats follow.

use anyhow::{Context, Result};
use serde::Serialize;

/// First byte of a message with columns; their size and a space follow.
const SIZE: u8 = b'#';

/// A message from a worker.
pub struct WorkerMessage {
    /// The JSON text.
    pub line: Vec<u8>,
    /// Floats of all columns, one column after another, little-endian f32.
    pub columns: Vec<u8>,
}

impl WorkerMessage {
    /// Returns the floats of the columns.
    pub fn numbers(&self) -> Vec<f32> {
        self.columns.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }
}

/// The bytes of a message received so far.
#[derive(Default)]
pub(super) struct Received {
    bytes: Vec<u8>,
    /// Position of the line end.
    end: Option<usize>,
}

impl Received {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.end = self.end.or_else(|| Some(before + bytes.iter().position(|byte| *byte == b'\n')?));
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the message once it is complete.
    pub(crate) fn take(&mut self) -> Option<WorkerMessage> {
        let end = self.end?;
        let (start, size) = size(&self.bytes[..end]);
        if self.bytes.len() - end - 1 < size {
            return None;
        }
        let mut line = std::mem::take(self).bytes;
        let mut columns = line.split_off(end + 1);
        columns.truncate(size);
        line.truncate(end);
        line.drain(..start);
        Some(WorkerMessage { line, columns })
    }
}

/// Returns true if a line of JSON may have more than `most` values: one begins the line, and at most one follows each comma, colon
/// and opening bracket outside of a text.
pub fn has_more_values_than(line: &[u8], most: usize) -> bool {
    let (mut values, mut in_text, mut escaped) = (1, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' | b':' if !in_text => values += 1,
            _ => {}
        }
    }
    values > most
}

/// Returns the position where the JSON of a line begins, and the number of bytes after the line.
fn size(line: &[u8]) -> (usize, usize) {
    let text = line.strip_prefix(&[SIZE]).and_then(|rest| std::str::from_utf8(&rest[..rest.len().min(20)]).ok());
    let digits = text.and_then(|text| text.split_once(' ')).map(|(digits, _)| digits);
    let size = digits.and_then(|digits| Some((digits.len() + 2, digits.parse().ok()?)));
    size.unwrap_or((0, 0))
}

/// Returns the random seed of a call: a hash of the arguments (FNV-1a), so it does not depend on the order of calls.
pub fn seed<'a>(arguments: impl IntoIterator<Item = &'a u8>) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    arguments.into_iter().fold(0xcbf2_9ce4_8422_2325_u64, mix)
}

/// Returns a request to call the function with this index. Includes the [`seed`] of the arguments and columns; a `salt` other
/// than 0 changes that seed.
///
/// # Errors
/// If the arguments cannot be written as JSON.
pub fn request(function: usize, arguments: &impl Serialize, columns: &[&[f32]], salt: u64) -> Result<Vec<u8>> {
    let arguments = serde_json::to_vec(arguments).context("the arguments of a Python function cannot be written as JSON")?;
    let columns: Vec<u8> = columns.iter().copied().flatten().flat_map(|number| number.to_le_bytes()).collect();
    let seed = seed(arguments.iter().chain(&columns)) ^ salt;
    let size = if columns.is_empty() { String::new() } else { format!("{}{} ", char::from(SIZE), columns.len()) };
    let mut message = format!("{size}{{\"function\":{function},\"seed\":{seed},\"arguments\":").into_bytes();
    message.extend(arguments);
    message.extend(b"}\n");
    message.extend(columns);
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        // An empty list counts twice, and a pair of an object once more than its value.
        for (line, values) in
            [("1", 1), ("[[],[]]", 5), (r#"{"a":[1,2]}"#, 5), (r#"["a,[{:\",[",2]"#, 3), (r#"["\\",[]]"#, 4), (r#""\\\",""#, 1)]
        {
            assert!(has_more_values_than(line.as_bytes(), values - 1), "{line}");
            assert!(!has_more_values_than(line.as_bytes(), values), "{line}");
        }
    }

    #[test]
    fn columns_arrive_unchanged_and_a_partial_message_is_not_returned() {
        let numbers = [1.5, f32::NAN, -0.0, f32::MIN_POSITIVE];
        for columns in [&[][..], &[&numbers[..2], &[], &numbers[2..]]] {
            let sent = request(3, &["a\u{2192}\n"], columns, 0).unwrap();
            let mut received = Received::default();
            for byte in &sent {
                assert!(received.take().is_none(), "{} bytes of {}", received.len(), sent.len());
                received.push(&[*byte]);
            }
            let message = received.take().unwrap();
            let line: serde_json::Value = serde_json::from_slice(&message.line).unwrap();
            assert_eq!((&line["function"], &line["arguments"]), (&3.into(), &serde_json::json!(["a\u{2192}\n"])));
            let bits = |numbers: &[f32]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&message.numbers()), bits(&columns.concat()));
        }
    }
}
