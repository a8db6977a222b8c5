//! A decode step of fixed shape. Its inputs and results keep their addresses on the device, so the step can be recorded and
//! replayed (in vLLM's words, a CUDA graph). A step can also use tokens of the step before that the host has not read yet.

/// The input of one row of a decode step.
#[derive(Clone, Copy, Debug)]
pub struct DecodeInput {
    /// The token; `None` for the token that this row sampled in the previous step.
    pub token: Option<u32>,
    pub position: usize,
    /// Index of the cache block that holds the position.
    pub block: usize,
}

#[cfg(feature = "gpu")]
pub use gpu::{DecodeGraph, PendingTokens};
#[cfg(not(feature = "gpu"))]
pub use none::{DecodeGraph, PendingTokens};

#[cfg(feature = "gpu")]
mod gpu {
    use std::future::poll_fn;
    use std::mem::replace;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use burn::tensor::{Bytes, DType, Int, Tensor};
    use burn_cubecl::cubecl::config::profiling::ProfilingLogLevel;
    use burn_cubecl::cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
    use burn_cubecl::cubecl::future::reader::read_sync;
    use burn_cubecl::cubecl::prelude::CubeElement;
    use burn_cubecl::cubecl::server::ServerError;
    use burn_cubecl::tensor::CubeTensor;

    use super::DecodeInput;
    use crate::CausalLm;
    use crate::decoder::Pass;
    use crate::kv_cache::KvCache;
    use crate::ops::block_tables::{BLOCK, Tables};
    use crate::ops::cube::decode_prologue::{Prologue, STEP_INPUTS, StepBuffers, decode_prologue};
    use crate::ops::cube::launch::{empty, of_gpu, on_gpu};
    use crate::ops::cube::recorded::Recorded;
    use crate::ops::cube::rows::{Rows, upload};
    use crate::ops::cube::sample::{SAMPLE_RESULTS, SETTINGS, draw_to};
    use crate::ops::{DeltaTensors, ScanTensors, cast, fused};
    use crate::rope::cos_sin;
    use crate::token_mixer::TokenMixer;

    /// The way the next step runs.
    enum StepMode {
        /// Launch by launch, since kernels may have to be compiled and autotuned. The next step is recorded, at most `recordings`
        /// times.
        Launched { recordings: usize },
        /// Launch by launch, while recording.
        Recording { recordings: usize },
        /// From the recording, for a cache whose memory has these ids.
        Replayed(Recorded, Vec<usize>),
    }

    /// Attempts to record a step. An attempt can run out of memory because other memory is freed late.
    const RECORDINGS: usize = 3;

    const ADVICE: &str = "rollout.enforce_eager=true launches every step";

    /// True if CubeCL logs the time of every launch. A recording has no such times.
    fn times_launches() -> bool {
        let level = CubeClRuntimeConfig::get().profiling.logger.level;
        !matches!(level, ProfilingLogLevel::Disabled | ProfilingLogLevel::Minimal)
    }

    /// The ids of a cache's memory, valid as long as that memory exists.
    fn memory(cache: &KvCache) -> Vec<usize> {
        cache.memory().map(|handle| handle.memory.descriptor().id.value).collect()
    }

    /// A decode step of one model, for a fixed number of rows.
    pub struct DecodeGraph {
        model: CausalLm,
        rows: usize,
        width: usize,
        prologue: Prologue,
        buffers: StepBuffers,
        /// Block tables and lengths of [`StepBuffers`], as `Tables`.
        tables: Tables,
        /// [`SETTINGS`] values per row.
        settings: CubeTensor,
        mode: StepMode,
    }

    type Read = Result<Vec<Bytes>, ServerError>;

    /// The sampled tokens of a step, on their way to the host.
    pub struct PendingTokens(Option<Pin<Box<dyn Future<Output = Read> + Send>>>);

    impl DecodeGraph {
        /// Creates a step of `rows` rows, with sequences of at most `width` blocks. If `records` is false, every step launches
        /// all kernels. Returns `None` if the model is not on a GPU, or its heads are too large for the GPU's attention. Models with
        /// recurrent layers (a step too far would move their states), sinks, latent keys, normalised values, mixtures or several
        /// rotations have no graph either.
        pub fn new(model: &CausalLm, rows: usize, width: usize, records: bool) -> Option<Self> {
            let trunk = &model.net.model;
            let embedding = Rows::from_tensor(trunk.embed_tokens.weight.val().inner())?;
            let config = &model.config;
            // A recorded step has one rotation, and does not ask the host, which chooses the experts of a token.
            let has_one_rotation = config.local_rope.is_none() && config.query_scaling.is_none();
            let is_plain = config.mixture.is_none()
                && config.recurrent_layers.is_none()
                && config.latent.is_none()
                && !config.value_norm
                && !config.attention_sinks;
            let is_recordable = has_one_rotation && is_plain;
            if embedding.tensor.dtype == DType::F64 || !fused::fits(config.head_dim) || !is_recordable {
                return None;
            }
            let prologue = Prologue {
                scale: model.config.embedding_scale,
                learned: trunk.embed_positions.as_ref().and_then(|table| Rows::from_tensor(table.weight.val().inner())),
                angles: model.frequencies.as_ref().map(|(frequencies, factor)| {
                    let positions: Vec<usize> = (0..width * BLOCK).collect();
                    let (cos, sin) = cos_sin(frequencies, *factor, &positions, &model.device);
                    [cos, sin].map(|angles| on_gpu(&cast(angles, model.dtype)).expect("made on the device of the model"))
                }),
                embedding,
            };
            let ints = |count: usize| upload(&prologue.embedding.tensor, &vec![0i32; count], DType::I32);
            let floats = |count: usize| upload(&prologue.embedding.tensor, &vec![0f32; count], DType::F32);
            let buffers = StepBuffers {
                inputs: ints(rows * STEP_INPUTS),
                drawn: floats(rows * SAMPLE_RESULTS),
                table: ints(rows * width),
                lens: ints(rows),
            };
            let index = |x: &CubeTensor| Tensor::<1, Int>::from_primitive::<burn::backend::Cube>(x.clone());
            let tables = Tables { blocks: index(&buffers.table), lens: index(&buffers.lens) };
            let settings = floats(rows * SETTINGS);
            let mode = StepMode::Launched { recordings: if records && !times_launches() { RECORDINGS } else { 0 } };
            Some(Self { model: model.clone(), rows, width, prologue, buffers, tables, settings, mode })
        }

        pub fn rows(&self) -> usize {
            self.rows
        }

        /// The largest number of blocks of a sequence.
        pub fn width(&self) -> usize {
            self.width
        }

        /// Sends the block tables of all rows [rows, width]. A step itself adds the block of its position.
        pub fn set_tables(&self, blocks: &[i32]) {
            assert_eq!(blocks.len(), self.rows * self.width, "blocks of all rows");
            write(&self.buffers.table, blocks);
        }

        /// Runs the step on `cache` and samples a token for each row by its [`SETTINGS`]. Does not wait for the device.
        pub fn step(&mut self, cache: &mut KvCache, inputs: &[DecodeInput], settings: &[f32]) -> PendingTokens {
            assert_eq!((inputs.len(), settings.len()), (self.rows, self.rows * SETTINGS), "rows of a step");
            let values =
                |input: &DecodeInput| [input.token.map_or(-1, |token| token as i32), input.position as i32, input.block as i32];
            write(&self.buffers.inputs, &inputs.iter().flat_map(values).collect::<Vec<_>>());
            write(&self.settings, settings);
            if matches!(&self.mode, StepMode::Replayed(_, of) if *of != memory(cache)) {
                self.forget();
            }
            match &self.mode {
                StepMode::Launched { recordings } => {
                    let recordings = *recordings;
                    self.run(cache);
                    if recordings > 0 {
                        self.mode = StepMode::Recording { recordings };
                    }
                }
                StepMode::Recording { recordings } => {
                    let recordings = recordings - 1;
                    let StepBuffers { drawn, table, lens, .. } = &self.buffers;
                    let written: Vec<_> =
                        [drawn, table, lens].map(|x| x.handle.clone()).into_iter().chain(cache.memory()).collect();
                    let recorded = Recorded::record(&drawn.client, || self.slack(), written, || self.run(cache));
                    self.mode = match recorded {
                        Ok(recorded) => StepMode::Replayed(recorded, memory(cache)),
                        Err(why) => {
                            if recordings == 0 {
                                tracing::warn!("decode steps are not replayed: {why}");
                            }
                            StepMode::Launched { recordings }
                        }
                    };
                }
                StepMode::Replayed(recorded, _) => {
                    // SAFETY: the model and the buffers of a step live as long as the recording. The memory of the cache, whose
                    // ids were just compared, lives as long.
                    let replayed = unsafe { recorded.replay() };
                    replayed.unwrap_or_else(|why| panic!("a recorded decode step cannot be replayed ({ADVICE}): {why}"));
                }
            }
            PendingTokens::start(&self.buffers.drawn)
        }

        /// Drops the recording, which reserves all memory that it uses. The next step is recorded again.
        pub fn forget(&mut self) {
            if matches!(self.mode, StepMode::Replayed(..)) {
                self.mode = StepMode::Recording { recordings: RECORDINGS };
            }
        }

        /// False if recording has failed, so that steps are launched.
        pub fn records(&self) -> bool {
            !matches!(self.mode, StepMode::Launched { recordings: 0 })
        }

        /// Spare memory for a recording: the size of eight results of a layer, the logits, and a dequantised part of a matrix.
        fn slack(&self) -> Vec<CubeTensor> {
            let (config, like) = (&self.model.config, &self.settings);
            let widest = config.intermediate_size.max(config.hidden_size).max(config.num_attention_heads * config.head_dim);
            let of_layer = (0..8).map(|_| [self.rows, widest]);
            let part = Some([1, config.dequantised_part() as usize]).filter(|[_, count]| *count > 0);
            of_layer.chain([[self.rows, config.vocab_size]]).chain(part).map(|shape| empty(like, shape, DType::F32)).collect()
        }

        /// Launches all kernels of the step.
        fn run(&self, cache: &mut KvCache) {
            let (x, angles) = decode_prologue(&self.prologue, &self.buffers);
            let rotation = angles.map(|[cos, sin]| (of_gpu(cos), of_gpu(sin)));
            let pass = Pass { rotation, independent_rows: true, ..self.model.pass_without_rotation() };
            let hidden = self.model.net.forward(of_gpu(x), &pass, &mut StepMixer { graph: self, cache });
            draw_to(self.model.logits_on_device(hidden), &self.settings, &self.buffers.drawn);
        }
    }

    /// The attention of a step. A model with recurrent layers or attention sinks has no graph.
    struct StepMixer<'a> {
        graph: &'a DecodeGraph,
        cache: &'a mut KvCache,
    }

    impl TokenMixer for StepMixer<'_> {
        fn attend(&mut self, layer: usize, [q, k, v]: [Tensor<3>; 3], _: Option<Tensor<1>>) -> Tensor<3> {
            let (new, scoring) = ([k, v].map(|x| x.flatten(1, 2)), self.graph.model.config.scoring(layer));
            self.cache.attend_by(layer, q, new, &self.graph.tables, scoring)
        }

        fn convolve(&mut self, _: usize, _: Tensor<2>, _: Tensor<2>) -> Tensor<2> {
            unreachable!("a model with recurrent layers has no graph")
        }

        fn delta_rule(&mut self, _: usize, _: DeltaTensors) -> Tensor<2> {
            unreachable!("a model with recurrent layers has no graph")
        }

        fn scan(&mut self, _: usize, _: ScanTensors) -> Tensor<2> {
            unreachable!("a model with recurrent layers has no graph")
        }
    }

    impl PendingTokens {
        /// Starts the copy of the buffer to the host. The device copies after all launches so far.
        fn start(drawn: &CubeTensor) -> Self {
            let (client, handle) = (drawn.client.clone(), drawn.handle.clone());
            let mut reading: Pin<Box<dyn Future<Output = Read> + Send>> = Box::pin(async move {
                // This line requests the copy; the returned future waits for it. On CUDA the wait does not yield the thread.
                let copied = client.read_async(vec![handle]);
                let mut was_polled = false;
                poll_fn(|_| if replace(&mut was_polled, true) { Poll::Ready(()) } else { Poll::Pending }).await;
                copied.await
            });
            // One poll requests the copy. The request must precede the next step, which writes to the buffer.
            _ = reading.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            Self(Some(reading))
        }

        /// Waits for the step. Returns token, log-probability and log-probability in generation for each row, [rows, 3].
        pub fn wait(mut self) -> Vec<f32> {
            let read = self.0.take().map(read_sync).expect("waited for once");
            let read =
                read.unwrap_or_else(|error| panic!("the sampled tokens of a decode step cannot be read ({ADVICE}): {error}"));
            f32::from_bytes(&read[0]).to_vec()
        }
    }

    impl Drop for PendingTokens {
        /// The host memory of a running copy must stay until the copy ends.
        fn drop(&mut self) {
            _ = self.0.take().map(read_sync);
        }
    }

    /// Writes 4-byte values to a buffer that keeps its address.
    fn write<T: CubeElement>(to: &CubeTensor, values: &[T]) {
        to.client.write(&to.handle, Bytes::from_bytes_vec(T::as_bytes(values).to_vec()));
    }
}

#[cfg(not(feature = "gpu"))]
mod none {
    use super::DecodeInput;
    use crate::{CausalLm, KvCache};

    const NONE: &str = "a build without GPUs records no steps";

    /// Placeholder in a build without GPUs.
    pub struct DecodeGraph(());

    /// Placeholder in a build without GPUs.
    pub struct PendingTokens(());

    impl DecodeGraph {
        pub fn new(_: &CausalLm, _: usize, _: usize, _: bool) -> Option<Self> {
            None
        }

        pub fn rows(&self) -> usize {
            unreachable!("{NONE}")
        }

        pub fn width(&self) -> usize {
            unreachable!("{NONE}")
        }

        pub fn set_tables(&self, _: &[i32]) {
            unreachable!("{NONE}")
        }

        pub fn forget(&mut self) {
            unreachable!("{NONE}")
        }

        pub fn records(&self) -> bool {
            unreachable!("{NONE}")
        }

        pub fn step(&mut self, _: &mut KvCache, _: &[DecodeInput], _: &[f32]) -> PendingTokens {
            unreachable!("{NONE}")
        }
    }

    impl PendingTokens {
        pub fn wait(self) -> Vec<f32> {
            unreachable!("{NONE}")
        }
    }
}
