//! Non-finite floats in JSON, which has no syntax for them. Every file of a run writes the strings `"NaN"`, `"Infinity"` and
//! `"-Infinity"`, which Python's `float` and Rust's `parse` understand. `null`, which serde and verl write for all three, is read
//! as NaN.
//!
//! A field uses this with `#[serde(with = "burnish_util::json_number")]`; it may be a float, or an `Option` or a `Vec` of floats.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// Returns the word for a non-finite float; `None` for a finite one.
pub fn word(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// Returns the float for such a word.
pub fn number(word: &str) -> Option<f64> {
    ["NaN", "Infinity", "-Infinity"].contains(&word).then(|| word.parse().ok()).flatten()
}

/// Returns floats as a JSON value, with words for non-finite ones; `None` is null.
pub fn to_value<T: Numbers>(numbers: T) -> Value {
    serde_json::to_value(Written(&numbers)).unwrap_or_default()
}

/// Returns the float that a JSON value or word represents; `None` for other values.
pub fn from_value(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| number(value.as_str()?)).or_else(|| value.is_null().then_some(f64::NAN))
}

/// Serializes floats, for `#[serde(with)]`.
///
/// # Errors
/// The errors of the serializer.
pub fn serialize<T: Numbers, S: Serializer>(numbers: &T, serializer: S) -> Result<S::Ok, S::Error> {
    numbers.write(serializer)
}

/// Deserializes floats, for `#[serde(with)]`.
///
/// # Errors
/// If a value is neither a number nor a word for one.
pub fn deserialize<'de, T: Numbers, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::read(deserializer)
}

/// One float, or several.
pub trait Numbers: Sized {
    /// Writes the floats, with words for non-finite ones.
    ///
    /// # Errors
    /// The errors of the serializer.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;

    /// Reads the floats.
    ///
    /// # Errors
    /// If a value is neither a number nor a word for one.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

struct Written<'a, T>(&'a T);

impl<T: Numbers> Serialize for Written<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

struct Read<T>(T);

impl<'de, T: Numbers> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read(deserializer).map(Self)
    }
}

impl Numbers for f64 {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match word(*self) {
            Some(word) => serializer.serialize_str(word),
            None => serializer.serialize_f64(*self),
        }
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl Visitor<'_> for Any {
            type Value = f64;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
            }

            fn visit_f64<E>(self, number: f64) -> Result<f64, E> {
                Ok(number)
            }

            fn visit_i64<E>(self, number: i64) -> Result<f64, E> {
                Ok(number as f64)
            }

            fn visit_u64<E>(self, number: u64) -> Result<f64, E> {
                Ok(number as f64)
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<f64, E> {
                number(word).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(word), &self))
            }

            fn visit_unit<E>(self) -> Result<f64, E> {
                Ok(f64::NAN)
            }
        }

        deserializer.deserialize_any(Any)
    }
}

impl Numbers for f32 {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match word(f64::from(*self)) {
            Some(word) => serializer.serialize_str(word),
            None => serializer.serialize_f32(*self),
        }
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::read(deserializer).map(|number| number as f32)
    }
}

impl<T: Numbers> Numbers for Option<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_ref().map(Written).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<Read<T>>::deserialize(deserializer)?.map(|read| read.0))
    }
}

impl<T: Numbers> Numbers for Vec<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Written))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Read<T>>::deserialize(deserializer)?.into_iter().map(|read| read.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, serde::Serialize, serde::Deserialize)]
    struct All {
        #[serde(with = "super")]
        one: f64,
        #[serde(with = "super")]
        perhaps: Option<f64>,
        #[serde(with = "super")]
        many: Option<Vec<f32>>,
    }

    proptest! {
        #[test]
        fn every_number_comes_back(one in prop::num::f64::ANY, perhaps in prop::option::of(prop::num::f64::ANY),
            many in prop::option::of(prop::collection::vec(prop::num::f32::ANY, 0..4))) {
            let bits = |all: &All| {
                // JSON has only one NaN.
                let of = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
                (of(all.one), all.perhaps.map(of), all.many.clone().map(|many| many.into_iter().map(|x| of(f64::from(x))).collect::<Vec<_>>()))
            };
            let all = All { one, perhaps, many };
            let text = serde_json::to_string(&all).unwrap();
            prop_assert!(!text.contains("one\":null"), "{}", text);
            prop_assert_eq!(bits(&serde_json::from_str(&text).unwrap()), bits(&all), "{}", text);
            prop_assert_eq!(from_value(&to_value(one)).map(f64::to_bits), Some(if one.is_nan() { f64::NAN.to_bits() } else { one.to_bits() }));
        }
    }

    #[test]
    fn words_are_pythons_and_null_is_what_others_write() {
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5].map(|x| to_value(x).to_string());
        assert_eq!(values, ["\"NaN\"", "\"Infinity\"", "\"-Infinity\"", "0.5"]);
        assert_eq!([to_value(None::<f64>), to_value(vec![1.0_f32, f32::NAN])], [Value::Null, serde_json::json!([1.0, "NaN"])]);
        let all: All = serde_json::from_str(r#"{"one":null,"perhaps":null,"many":[null,1]}"#).unwrap();
        assert!(all.one.is_nan() && all.perhaps.is_none() && all.many.unwrap()[0].is_nan());
        assert!(serde_json::from_str::<All>(r#"{"one":"inf","perhaps":null,"many":null}"#).is_err());
    }
}
