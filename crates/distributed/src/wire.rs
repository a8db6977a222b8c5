//! Lossless conversion of values to bytes and back: CBOR, which unlike JSON has every float.

use std::io::Cursor;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Converts a value to bytes.
///
/// # Panics
/// If the value has a map with keys other than strings or numbers.
pub(crate) fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).expect("values between ranks are plain data");
    bytes
}

/// Converts the bytes of [`encoded`] to a value.
///
/// # Panics
/// If the bytes are of another type. All ranks run the same version of the program, which is checked at the start.
pub(crate) fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> T {
    ciborium::from_reader(Cursor::new(bytes)).expect("ranks exchange values of the same type")
}

/// Converts floats to bytes, little-endian like every machine that this program is built for.
pub(crate) fn of_f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Converts the bytes of [`of_f32s`] to floats.
pub(crate) fn to_f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}
