//! The thread of the engine, which samples the sequences of a [`RequestHub`].

use std::sync::Arc;
use std::thread;

use anyhow::{Error, Result};
use tokio::sync::oneshot::{Receiver, channel};

use super::hub::RequestHub;
use burnish_engine::{Engine, NativeEngine};
use burnish_model::CausalLm;
use burnish_model::device::GpuStream;
use burnish_rollout::{TokenRules, TurnSettings};

/// The stack of the engine's thread, as large as that of a program's main thread.
const STACK: usize = 8 << 20;

/// Samples the hub's sequences until the hub is closed. Returns the receiver of the error that ends the thread.
///
/// # Errors
/// If the system has no thread left.
pub(crate) fn start(
    model: CausalLm,
    eos: Vec<u32>,
    rules: Option<TokenRules>,
    mut engine: NativeEngine,
    hub: Arc<RequestHub>,
) -> Result<Receiver<Error>> {
    let (broke_off, broken) = channel();
    let order = GpuStream::current();
    // This thread is not joined: the end of the process ends it, even within a step.
    let sample = move || {
        let _closes = CloseOnDrop(hub.clone());
        let token = |sequence, token| hub.token(sequence, token);
        let settings = TurnSettings { eos: &eos, stops: None, rules: rules.as_ref(), progress: None, token: Some(&token) };
        if let Err(error) = order.run(|| engine.converse(&model, &settings, &*hub)) {
            _ = broke_off.send(error);
        }
    };
    thread::Builder::new().name("engine".to_owned()).stack_size(STACK).spawn(sample)?;
    Ok(broken)
}

/// Closes the hub when the engine's thread ends, also by a panic.
struct CloseOnDrop(Arc<RequestHub>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
