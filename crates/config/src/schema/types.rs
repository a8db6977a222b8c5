//! Field types that the standard ones do not cover: paths with `~`, one-or-many lists, frequencies, devices, open mappings.

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A mapping with keys that are not in the schema.
pub type OpenMapping = std::collections::BTreeMap<String, serde_json::Value>;

/// A file, a folder, or a name of either, which is shown as written. A leading `~/` is expanded to the home folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    text: String,
    /// The paths of a resolved name.
    paths: Vec<PathBuf>,
    lacks_weights: bool,
}

impl Location {
    /// Expands `~`.
    pub fn new(text: &str) -> Self {
        let home = std::env::var("HOME").ok().filter(|_| text == "~" || text.starts_with("~/"));
        let text = home.map_or_else(|| text.to_string(), |home| format!("{home}{}", &text[1..]));
        Self { text, paths: vec![], lacks_weights: false }
    }

    /// Creates a resolved name with its paths. `lacks_weights`: the name is a model with missing weights.
    pub fn resolved(name: &str, paths: Vec<PathBuf>, lacks_weights: bool) -> Self {
        Self { text: name.to_owned(), paths, lacks_weights }
    }

    /// Returns the path, or the first path of a resolved name.
    pub fn as_path(&self) -> &Path {
        self.paths.first().map_or(Path::new(&self.text), PathBuf::as_path)
    }

    /// Returns the path, or all paths of a resolved name.
    pub fn paths(&self) -> Vec<PathBuf> {
        if self.paths.is_empty() { vec![PathBuf::from(&self.text)] } else { self.paths.clone() }
    }

    /// True if this is the name of a model with missing weights, in a run that does not read them.
    pub fn lacks_weights(&self) -> bool {
        self.lacks_weights
    }
}

impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl Deref for Location {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

impl AsRef<Path> for Location {
    fn as_ref(&self) -> &Path {
        self.as_path()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Location {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // An unset shell variable, as in data.train_files=$FILES, must not become the current folder.
        let empty = || de::Error::invalid_value(de::Unexpected::Str(""), &"a path");
        if text.is_empty() { Err(empty()) } else { Ok(Self::new(&text)) }
    }
}

/// A number, or a text with numbers in the notation of its key.
#[derive(Debug, Clone, PartialEq)]
pub enum NumberOrText {
    Number(f64),
    Text(String),
}

impl fmt::Display for NumberOrText {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for NumberOrText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for NumberOrText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrTextVisitor;

        impl Visitor<'_> for NumberOrTextVisitor {
            type Value = NumberOrText;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number or text")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(NumberOrText::Number(number as f64))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(NumberOrText::Number(number as f64))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
                Ok(NumberOrText::Number(number))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(NumberOrText::Text(text.to_owned()))
            }
        }

        deserializer.deserialize_any(NumberOrTextVisitor)
    }
}

/// A list; one element may be written without brackets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct OneOrMany<T>(pub Vec<T>);

impl OneOrMany<Location> {
    /// Returns the paths of all items.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.0.iter().flat_map(Location::paths).collect()
    }
}

impl<T> Deref for OneOrMany<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrManyVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrManyVisitor<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(de::value::StrDeserializer::new(text)).map(|one| OneOrMany(vec![one]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut many = Vec::new();
                while let Some(item) = items.next_element()? {
                    many.push(item);
                }
                Ok(OneOrMany(many))
            }
        }

        deserializer.deserialize_any(OneOrManyVisitor(PhantomData))
    }
}

/// Reads files that a run may lack: null and an empty list both mean no files.
pub(super) fn files_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<OneOrMany<Location>>, D::Error> {
    let files = Option::<OneOrMany<Location>>::deserialize(deserializer)?;
    Ok(files.filter(|files| !files.is_empty()))
}

/// The interval, in steps, of a repeated action of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frequency {
    /// At no step; written as -1.
    Never,
    /// After each such number of steps, and after the last step.
    Steps(NonZeroU64),
    /// After the last step of each pass over the training rows, and after the last step.
    AfterEachEpoch,
}

const AFTER_EACH_EPOCH: &str = "after_each_epoch";

impl Frequency {
    /// True if the action is never due.
    pub fn is_never(self) -> bool {
        self == Self::Never
    }

    /// True if the action may be due after an earlier step than this one; the last step of the run does not count.
    pub fn is_due_before(self, step: u64) -> bool {
        match self {
            Self::Never => false,
            Self::Steps(steps) => steps.get() < step,
            Self::AfterEachEpoch => step > 1,
        }
    }

    /// True if the action is due at every step at which the other action is due.
    pub(crate) fn is_due_whenever(self, other: Self) -> bool {
        match (self, other) {
            (_, Self::Never) => true,
            (Self::Steps(own), Self::Steps(other)) => other.get().is_multiple_of(own.get()),
            (Self::Steps(own), Self::AfterEachEpoch) => own.get() == 1,
            (Self::AfterEachEpoch, Self::AfterEachEpoch) => true,
            (Self::Never | Self::AfterEachEpoch, _) => false,
        }
    }

    /// True if the action is due after `step` of a run of `total_steps`; steps count from 1.
    pub fn is_due(self, step: u64, total_steps: u64, steps_per_epoch: u64) -> bool {
        let every = match self {
            Self::Never => return false,
            Self::Steps(steps) => steps.get(),
            Self::AfterEachEpoch => steps_per_epoch,
        };
        step == total_steps || step.is_multiple_of(every)
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Never => f.write_str("-1"),
            Self::Steps(steps) => write!(f, "{steps}"),
            Self::AfterEachEpoch => f.write_str(AFTER_EACH_EPOCH),
        }
    }
}

impl Serialize for Frequency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Never => serializer.serialize_i64(-1),
            Self::Steps(steps) => serializer.serialize_u64(steps.get()),
            Self::AfterEachEpoch => serializer.serialize_str(AFTER_EACH_EPOCH),
        }
    }
}

impl<'de> Deserialize<'de> for Frequency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FrequencyVisitor;

        impl Visitor<'_> for FrequencyVisitor {
            type Value = Frequency;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "an integer or {AFTER_EACH_EPOCH}")
            }

            fn visit_i64<E: de::Error>(self, steps: i64) -> Result<Self::Value, E> {
                self.visit_u64(u64::try_from(steps).unwrap_or(0))
            }

            fn visit_u64<E: de::Error>(self, steps: u64) -> Result<Self::Value, E> {
                Ok(NonZeroU64::new(steps).map_or(Frequency::Never, Frequency::Steps))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let other = || E::invalid_value(de::Unexpected::Str(text), &self);
                (text == AFTER_EACH_EPOCH).then_some(Frequency::AfterEachEpoch).ok_or_else(other)
            }
        }

        deserializer.deserialize_any(FrequencyVisitor)
    }
}

/// The device of the tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    Cpu,
    /// The GPU with this number among the GPUs of the interface.
    Gpu(Interface, usize),
}

/// The values of a device, in words.
const DEVICES: &str = "cpu, or cuda, rocm, metal, vulkan or wgpu, with :N for the GPU of that number";

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu(interface, index) => write!(f, "{}:{index}", interface.as_str()),
        }
    }
}

impl Serialize for Device {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "cpu" {
            return Ok(Self::Cpu);
        }
        let (name, index) = text.split_once(':').unwrap_or((text.as_str(), "0"));
        // Only digits are allowed; `parse` would also take a sign.
        let index = index.parse::<usize>().ok().filter(|_| index.bytes().all(|byte| byte.is_ascii_digit()));
        match (Interface::ALL.into_iter().find(|interface| interface.as_str() == name), index) {
            (Some(interface), Some(index)) => Ok(Self::Gpu(interface, index)),
            _ if name == "mps" => Err(de::Error::invalid_value(de::Unexpected::Str(&text), &"metal, which PyTorch calls mps")),
            _ => Err(de::Error::invalid_value(de::Unexpected::Str(&text), &DEVICES)),
        }
    }
}

/// Declares an enum with one spelling per variant. Unlike serde's derive, it refuses numbers and lists the spellings in errors.
/// `refuses` lists further spellings that are refused with a special reason.
macro_rules! choices {
    (
        $(#[$doc:meta])* pub enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }
        $(refuses $($refused:literal)|+ => $why:literal)?
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Returns the spelling in the configuration.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                match text.as_str() {
                    $($text => Ok(Self::$variant),)+
                    $($($refused)|+ => Err(<D::Error as serde::de::Error>::custom($why)),)?
                    other => Err(serde::de::Error::unknown_variant(other, &[$($text),+])),
                }
            }
        }
    };
}
pub(super) use choices;

choices! {
    /// The interface to a GPU; each is a cargo feature of the same name.
    pub enum Interface {
        Cuda = "cuda",
        Rocm = "rocm",
        Metal = "metal",
        Vulkan = "vulkan",
        /// WGSL, through Vulkan, Metal or Direct3D 12.
        Wgpu = "wgpu",
    }
}

impl Interface {
    /// All interfaces.
    pub const ALL: [Self; 5] = [Self::Cuda, Self::Rocm, Self::Metal, Self::Vulkan, Self::Wgpu];

    /// True if GPUs support bfloat16 through this interface; old GPUs may not.
    fn has_bfloat16(self) -> bool {
        matches!(self, Self::Cuda | Self::Rocm | Self::Metal)
    }
}

choices! {
    /// The number format of matmuls and attention.
    pub enum Dtype {
        /// bfloat16 on a GPU that supports it, else float32.
        Auto = "auto",
        Float32 = "float32",
        Bfloat16 = "bfloat16",
    }
    refuses "float16" | "fp16" | "half" =>
        "float16 is not supported, because it needs loss scaling; write bfloat16, or float32 for a GPU without bfloat16, such as a T4"
}

impl Dtype {
    /// True if this is bfloat16 on a device that is not yet open. On a GPU that turns out to lack bfloat16, `auto` becomes
    /// float32 (`is_bfloat16` in `job/models.rs`).
    pub fn is_bfloat16(self, device: Device) -> bool {
        match self {
            Self::Auto => matches!(device, Device::Gpu(interface, _) if interface.has_bfloat16()),
            Self::Float32 => false,
            Self::Bfloat16 => true,
        }
    }
}

choices! {
    /// The source of a model's weights.
    pub enum ModelInit {
        /// The weight files of its folder.
        Pretrained = "pretrained",
        /// Random weights from `trainer.seed`; only config.json and the tokenizer are read.
        Random = "random",
    }
}
