//! Reads a Python script with one of TRL's trainers.

mod adapters;
mod configuration;
mod loading;
mod model;
mod quantization;
mod read;
mod reading;
mod rewards;
mod rows;
mod trainer_arguments;
mod trainers;

pub(super) use read::read;
