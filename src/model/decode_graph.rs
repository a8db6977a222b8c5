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
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use burn::tensor::{Bytes, DType, Int, Tensor};
    use burn_cubecl::cubecl::future::reader::read_sync;
    use burn_cubecl::cubecl::prelude::CubeElement;
    use burn_cubecl::cubecl::server::ServerError;
    use burn_cubecl::tensor::CubeTensor;

    use super::Next;
    use crate::model::CausalLm;
    use crate::model::decoder::Pass;
    use crate::model::kv_cache::KvCache;
    use crate::model::ops::block_tables::{BLOCK, Tables};
    use crate::model::ops::cube::begin::{ASKED, Begin, Places, begin};
    use crate::model::ops::cube::launch::{of_gpu, on_gpu};
    use crate::model::ops::cube::recorded::Recorded;
    use crate::model::ops::cube::rows::upload;
    use crate::model::ops::cube::sample::{DRAWN, SETTINGS, draw_to};
    use crate::model::ops::{cast, fused};
    use crate::model::rope::cos_sin;

    /// How the step is run.
    enum How {
        /// Launch by launch. Kernels may have to be compiled and chosen; if it records, the next step is recorded.
        Launched { records: bool },
        /// Launch by launch, and recorded.
        Recording,
        /// For a cache whose memory is there.
        Replayed(Recorded, Vec<usize>),
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
    pub enum Drawing {
        Read(Read),
        Reading(Pin<Box<dyn Future<Output = Read> + Send>>),
    }

    impl DecodeGraph {
        /// Makes a step of `rows` rows, of sequences of at most `width` blocks. Unless it `records`, all is launched anew in each step.
        /// Returns nothing if the model does not lie on a GPU or its heads are too large for attention there.
        pub fn new(model: &CausalLm, rows: usize, width: usize, records: bool) -> Option<Self> {
            let trunk = &model.net.model;
            let embedding = on_gpu(&trunk.embed_tokens.weight.val().inner())?;
            if embedding.dtype == DType::F64 || !fused::fits(model.config.head_dim) {
                return None;
            }
            let begin = Begin {
                scale: model.config.embedding_scale,
                learned: trunk.embed_positions.as_ref().and_then(|table| on_gpu(&table.weight.val().inner())),
                angles: model.frequencies.as_ref().map(|(frequencies, factor)| {
                    let positions: Vec<usize> = (0..width * BLOCK).collect();
                    let (cos, sin) = cos_sin(frequencies, *factor, &positions, &model.device);
                    [cos, sin].map(|angles| on_gpu(&cast(angles, model.dtype)).expect("made on the device of the model"))
                }),
                embedding,
            };
            let ints = |count: usize| upload(&begin.embedding, &vec![0i32; count], DType::I32);
            let floats = |count: usize| upload(&begin.embedding, &vec![0f32; count], DType::F32);
            let places =
                Places { asked: ints(rows * ASKED), drawn: floats(rows * DRAWN), table: ints(rows * width), lens: ints(rows) };
            let index = |x: &CubeTensor| Tensor::<1, Int>::from_primitive::<burn::backend::Cube>(x.clone());
            let tables = Tables { blocks: index(&places.table), lens: index(&places.lens) };
            let settings = floats(rows * SETTINGS);
            Some(Self { model: model.clone(), rows, width, begin, places, tables, settings, how: How::Launched { records } })
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
            if matches!(&self.how, How::Replayed(_, memory) if *memory != cache.memory()) {
                self.how = How::Recording;
            }
            match &self.how {
                How::Launched { records } => {
                    let records = *records;
                    self.run(cache);
                    if records {
                        self.how = How::Recording;
                    }
                }
                How::Recording => {
                    let ((), recorded) = Recorded::of(&self.settings.client, || self.run(cache));
                    self.how = match recorded {
                        Ok(recorded) => How::Replayed(recorded, cache.memory()),
                        Err(why) => {
                            tracing::warn!("decode steps are not replayed: {why}");
                            How::Launched { records: false }
                        }
                    };
                }
                How::Replayed(recorded, _) => {
                    // SAFETY: the model and the buffers of a step live as long as the recording, and so does the memory of the cache,
                    // which has just been compared.
                    let replayed = unsafe { recorded.replay() };
                    replayed.unwrap_or_else(|why| panic!("a recorded decode step cannot be replayed: {why}"));
                }
            }
            Drawing::start(&self.places.drawn)
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
            let mut reading = Box::pin(async move { client.read_async(vec![handle]).await });
            // The copy is asked for when the future is polled, and must come before the next step, which writes to the buffer.
            match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(read) => Self::Read(read),
                Poll::Pending => Self::Reading(reading),
            }
        }

        /// Waits for the step. Returns the token, its log-probability and that in generation for each row, [rows, 3].
        pub fn wait(self) -> Vec<f32> {
            let read = match self {
                Self::Read(read) => read,
                Self::Reading(reading) => read_sync(reading),
            };
            let read = read.unwrap_or_else(|error| panic!("what a decode step has drawn cannot be read: {error}"));
            f32::from_bytes(&read[0]).to_vec()
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
    use crate::model::{CausalLm, KvCache};

    /// There is none in a build without GPUs.
    pub enum DecodeGraph {}

    /// There is none in a build without GPUs.
    pub enum Drawing {}

    impl DecodeGraph {
        pub fn new(_: &CausalLm, _: usize, _: usize, _: bool) -> Option<Self> {
            None
        }

        pub fn rows(&self) -> usize {
            match *self {}
        }

        pub fn width(&self) -> usize {
            match *self {}
        }

        pub fn set_tables(&self, _: &[i32]) {
            match *self {}
        }

        pub fn step(&mut self, _: &mut KvCache, _: &[Next], _: &[f32]) -> Drawing {
            match *self {}
        }
    }

    impl Drawing {
        pub fn wait(self) -> Vec<f32> {
            match self {}
        }
    }
}
