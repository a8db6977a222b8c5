//! A decode step of fixed shape: its inputs and results keep their places on the device, so that it can be recorded as a graph and
//! replayed (vLLM calls it a CUDA graph), and a step can take the tokens of the one before while the host has not read them yet.

/// What a row of a step is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// The token; `None` for the one that this row has drawn in the step before.
    pub token: Option<u32>,
    pub position: usize,
    /// The block of the cache that holds the position.
    pub block: usize,
}

#[cfg(feature = "gpu")]
pub use gpu::{DecodeGraph, Drawing};
#[cfg(not(feature = "gpu"))]
pub use none::{DecodeGraph, Drawing};

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

    use super::Next;
    use crate::CausalLm;
    use crate::decoder::Pass;
    use crate::kv_cache::KvCache;
    use crate::ops::block_tables::{BLOCK, Tables};
    use crate::ops::cube::begin::{ASKED, Begin, Places, begin};
    use crate::ops::cube::launch::{empty, of_gpu, on_gpu};
    use crate::ops::cube::recorded::Recorded;
    use crate::ops::cube::rows::{Rows, upload};
    use crate::ops::cube::sample::{DRAWN, SETTINGS, draw_to};
    use crate::ops::{cast, fused};
    use crate::rope::cos_sin;

    /// How the step is run.
    enum How {
        /// Launch by launch. Kernels may have to be compiled and chosen; the next step is recorded, at most so many times.
        Launched { recordings: usize },
        /// Launch by launch, and recorded.
        Recording { recordings: usize },
        /// For a cache with that memory.
        Replayed(Recorded, Vec<usize>),
    }

    /// The number of times that a recording is tried: what is freed late may lack one of them memory.
    const RECORDINGS: usize = 3;

    const ADVICE: &str = "rollout.enforce_eager=true launches every step";

    /// True if CubeCL's log has the time of every launch, which none of a recording has.
    fn times_launches() -> bool {
        let level = CubeClRuntimeConfig::get().profiling.logger.level;
        !matches!(level, ProfilingLogLevel::Disabled | ProfilingLogLevel::Minimal)
    }

    /// Numbers that the memory of a cache has as long as it is there.
    fn memory(cache: &KvCache) -> Vec<usize> {
        cache.memory().map(|handle| handle.memory.descriptor().id.value).collect()
    }

    /// A decode step of a number of rows of a model.
    pub struct DecodeGraph {
        model: CausalLm,
        rows: usize,
        width: usize,
        begin: Begin,
        places: Places,
        /// The table and the lengths of [`Places`].
        tables: Tables,
        /// [`SETTINGS`] for each row.
        settings: CubeTensor,
        how: How,
    }

    type Read = Result<Vec<Bytes>, ServerError>;

    /// What a step draws, on its way to the host.
    pub struct Drawing(Option<Pin<Box<dyn Future<Output = Read> + Send>>>);

    impl DecodeGraph {
        /// Makes a step of `rows` rows, of sequences of at most `width` blocks. Unless it `records`, all is launched anew in each step.
        /// Returns nothing if the model does not lie on a GPU or its heads are too large for attention there.
        pub fn new(model: &CausalLm, rows: usize, width: usize, records: bool) -> Option<Self> {
            let trunk = &model.net.model;
            let embedding = Rows::of(trunk.embed_tokens.weight.val().inner())?;
            if embedding.tensor.dtype == DType::F64 || !fused::fits(model.config.head_dim) {
                return None;
            }
            let begin = Begin {
                scale: model.config.embedding_scale,
                learned: trunk.embed_positions.as_ref().and_then(|table| Rows::of(table.weight.val().inner())),
                angles: model.frequencies.as_ref().map(|(frequencies, factor)| {
                    let positions: Vec<usize> = (0..width * BLOCK).collect();
                    let (cos, sin) = cos_sin(frequencies, *factor, &positions, &model.device);
                    [cos, sin].map(|angles| on_gpu(&cast(angles, model.dtype)).expect("made on the device of the model"))
                }),
                embedding,
            };
            let ints = |count: usize| upload(&begin.embedding.tensor, &vec![0i32; count], DType::I32);
            let floats = |count: usize| upload(&begin.embedding.tensor, &vec![0f32; count], DType::F32);
            let places =
                Places { asked: ints(rows * ASKED), drawn: floats(rows * DRAWN), table: ints(rows * width), lens: ints(rows) };
            let index = |x: &CubeTensor| Tensor::<1, Int>::from_primitive::<burn::backend::Cube>(x.clone());
            let tables = Tables { blocks: index(&places.table), lens: index(&places.lens) };
            let settings = floats(rows * SETTINGS);
            let how = How::Launched { recordings: if records && !times_launches() { RECORDINGS } else { 0 } };
            Some(Self { model: model.clone(), rows, width, begin, places, tables, settings, how })
        }

        pub fn rows(&self) -> usize {
            self.rows
        }

        /// The blocks that a sequence may have.
        pub fn width(&self) -> usize {
            self.width
        }

        /// Sends the blocks of every row's sequence [rows, width]. A step adds the block of its position by itself.
        pub fn set_tables(&self, blocks: &[i32]) {
            assert_eq!(blocks.len(), self.rows * self.width, "blocks of all rows");
            write(&self.places.table, blocks);
        }

        /// Runs the step on `cache`, and draws a token for each row by its [`SETTINGS`]. Nothing waits for the device.
        pub fn step(&mut self, cache: &mut KvCache, asked: &[Next], settings: &[f32]) -> Drawing {
            assert_eq!((asked.len(), settings.len()), (self.rows, self.rows * SETTINGS), "rows of a step");
            let numbers = |next: &Next| [next.token.map_or(-1, |token| token as i32), next.position as i32, next.block as i32];
            write(&self.places.asked, &asked.iter().flat_map(numbers).collect::<Vec<_>>());
            write(&self.settings, settings);
            if matches!(&self.how, How::Replayed(_, of) if *of != memory(cache)) {
                self.forget();
            }
            match &self.how {
                How::Launched { recordings } => {
                    let recordings = *recordings;
                    self.run(cache);
                    if recordings > 0 {
                        self.how = How::Recording { recordings };
                    }
                }
                How::Recording { recordings } => {
                    let recordings = recordings - 1;
                    let Places { drawn, table, lens, .. } = &self.places;
                    let written: Vec<_> =
                        [drawn, table, lens].map(|x| x.handle.clone()).into_iter().chain(cache.memory()).collect();
                    let recorded = Recorded::of(&drawn.client, || self.slack(), written, || self.run(cache));
                    self.how = match recorded {
                        Ok(recorded) => How::Replayed(recorded, memory(cache)),
                        Err(why) => {
                            if recordings == 0 {
                                tracing::warn!("decode steps are not replayed: {why}");
                            }
                            How::Launched { recordings }
                        }
                    };
                }
                How::Replayed(recorded, _) => {
                    // SAFETY: the model and the buffers of a step live as long as the recording, and so does the memory of the cache,
                    // which has just been compared.
                    let replayed = unsafe { recorded.replay() };
                    replayed.unwrap_or_else(|why| panic!("a recorded decode step cannot be replayed ({ADVICE}): {why}"));
                }
            }
            Drawing::start(&self.places.drawn)
        }

        /// Drops the recording, which keeps all memory that it uses from anything else. The next step is recorded again.
        pub fn forget(&mut self) {
            if matches!(self.how, How::Replayed(..)) {
                self.how = How::Recording { recordings: RECORDINGS };
            }
        }

        /// False if steps are launched because recordings failed.
        pub fn records(&self) -> bool {
            !matches!(self.how, How::Launched { recordings: 0 })
        }

        /// As much memory as some results of a layer and the logits take.
        fn slack(&self) -> Vec<CubeTensor> {
            let (config, like) = (&self.model.config, &self.settings);
            let widest = config.intermediate_size.max(config.hidden_size).max(config.num_attention_heads * config.head_dim);
            let of_layer = (0..8).map(|_| [self.rows, widest]);
            of_layer.chain([[self.rows, config.vocab_size]]).map(|shape| empty(like, shape, DType::F32)).collect()
        }

        /// Launches all kernels of the step.
        fn run(&self, cache: &mut KvCache) {
            let (x, angles) = begin(&self.begin, &self.places);
            let rotation = angles.map(|[cos, sin]| (of_gpu(cos), of_gpu(sin)));
            let pass = Pass { rotation, independent_rows: true, ..self.model.pass_without_rotation() };
            let hidden = self.model.net.forward(of_gpu(x), &pass, &mut |layer, q, k, v| {
                let new = [k, v].map(|x| x.flatten(1, 2));
                cache.attend_by(layer, q, new, &self.tables, self.model.config.scoring(layer))
            });
            draw_to(self.model.logits_on_device(hidden), &self.settings, &self.places.drawn);
        }
    }

    impl Drawing {
        /// Has the device copy what is in the buffer once the launches so far have ended.
        fn start(drawn: &CubeTensor) -> Self {
            let (client, handle) = (drawn.client.clone(), drawn.handle.clone());
            let mut reading: Pin<Box<dyn Future<Output = Read> + Send>> = Box::pin(async move {
                // The copy is asked for here; what is returned waits for it, on CUDA without giving the thread back.
                let copied = client.read_async(vec![handle]);
                let mut was_polled = false;
                poll_fn(|_| if replace(&mut was_polled, true) { Poll::Ready(()) } else { Poll::Pending }).await;
                copied.await
            });
            // So far that the copy is asked for: it must come before the next step, which writes to the buffer.
            _ = reading.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            Self(Some(reading))
        }

        /// Waits for the step. Returns the token, its log-probability and that in generation for each row, [rows, 3].
        pub fn wait(mut self) -> Vec<f32> {
            let read = self.0.take().map(read_sync).expect("it is waited for once");
            let read = read.unwrap_or_else(|error| panic!("what a decode step has drawn cannot be read ({ADVICE}): {error}"));
            f32::from_bytes(&read[0]).to_vec()
        }
    }

    impl Drop for Drawing {
        /// Memory of the host that is being copied to must stay until it is.
        fn drop(&mut self) {
            _ = self.0.take().map(read_sync);
        }
    }

    /// Writes numbers of 4 bytes to a buffer that keeps its place.
    fn write<T: CubeElement>(to: &CubeTensor, numbers: &[T]) {
        to.client.write(&to.handle, Bytes::from_bytes_vec(T::as_bytes(numbers).to_vec()));
    }
}

#[cfg(not(feature = "gpu"))]
mod none {
    use super::Next;
    use crate::{CausalLm, KvCache};

    const NONE: &str = "a build without GPUs records no steps";

    /// There is none in a build without GPUs.
    pub struct DecodeGraph(());

    /// There is none in a build without GPUs.
    pub struct Drawing(());

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

        pub fn step(&mut self, _: &mut KvCache, _: &[Next], _: &[f32]) -> Drawing {
            unreachable!("{NONE}")
        }
    }

    impl Drawing {
        pub fn wait(self) -> Vec<f32> {
            unreachable!("{NONE}")
        }
    }
}
