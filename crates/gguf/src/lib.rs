//! Models as GGUF files, which llama.cpp and the programs around it read.
//!
//! [`write_gguf`] turns a folder in transformers' layout into one file. A family is a row of `architectures.rs`, and the names of
//! its tensors are a table in `tensor_names.rs`. The form of the file is the GGUF specification of ggml, version 3.

mod architectures;
mod export;
mod file;
mod metadata;
mod tensor_names;
mod tensor_type;
mod tokenizer;

pub use export::write_gguf;
pub use tensor_type::TensorType;
