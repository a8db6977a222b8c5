//! Work on every row, in parallel: a row becomes JSON when its turn comes, and what others wrote, such as a chat template, is run on
//! threads on which it can do no harm.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Error, Result};
use rayon::prelude::*;

use super::rows::{Row, Rows};
use super::template_limits::{GivenUp, RENDERING};
use crate::util::contained::{BEFORE_PART, Limits, caught, contained};

/// The number of rows that one thread works on before it takes others; to hand them over takes as long as some rows.
const TOGETHER: usize = 64;

/// The bounds of the work on some rows: none but the stack, which has room for a template, whose bounds are its own.
const WORK: Limits = Limits { memory: usize::MAX, time: None, stack: RENDERING.stack + BEFORE_PART };

impl Rows {
    /// Calls `work` with the position of each row in all files and the row, and returns the results in order. Errors of `work` get
    /// the row's place.
    ///
    /// # Errors
    /// The first row's, in the order of the rows, that cannot be read or worked on.
    pub fn each<T, F>(&self, work: F) -> Result<Vec<T>>
    where
        T: Send + 'static,
        F: Fn(usize, Row) -> Result<T> + Send + Sync + 'static,
    {
        let (work, failed) = (Arc::new(work), Arc::new(AtomicUsize::new(usize::MAX)));
        let chunks: Vec<Range<usize>> =
            (0..self.len()).step_by(TOGETHER).map(|start| start..(start + TOGETHER).min(self.len())).collect();
        // All rows before one that fails are worked on, so that the same file always gives the same error.
        let results = chunks.into_par_iter().flat_map_iter(|chunk| self.some(chunk, work.clone(), failed.clone()));
        let (mut done, mut first) = (Vec::with_capacity(self.len()), None);
        for result in results.collect::<Vec<Result<T>>>() {
            match result {
                Ok(result) => done.push(result),
                // A template that another row made to be given up says nothing about this one.
                Err(error) if first.as_ref().is_none_or(|first| is_given_up(first) && !is_given_up(&error)) => {
                    first = Some(error)
                }
                Err(_) => {}
            }
        }
        first.map_or(Ok(done), Err)
    }

    /// The results of some rows, up to one that ends the work. `failed`: the first row known to fail; those after it are left out.
    fn some<T, F>(&self, chunk: Range<usize>, work: Arc<F>, failed: Arc<AtomicUsize>) -> Vec<Result<T>>
    where
        T: Send + 'static,
        F: Fn(usize, Row) -> Result<T> + Send + Sync + 'static,
    {
        let (rows, start) = (self.clone(), chunk.start);
        let results = Arc::new(Mutex::new(Vec::with_capacity(chunk.len())));
        let each = {
            let (results, failed) = (results.clone(), failed.clone());
            move || {
                for index in chunk.take_while(|index| *index <= failed.load(Ordering::Relaxed)) {
                    let place = || rows.place(index);
                    let one = || rows.row(index).and_then(|row| work(index, row).with_context(place));
                    let result = caught(one).unwrap_or_else(|excess| Err(Error::new(excess).context(place())));
                    if result.as_ref().is_err_and(|error| !is_given_up(error)) {
                        failed.fetch_min(index, Ordering::Relaxed);
                    }
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                }
            }
        };
        let ended = contained(WORK, each);
        let mut results = std::mem::take(&mut *results.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(excess) = ended {
            let index = start + results.len();
            failed.fetch_min(index, Ordering::Relaxed);
            let place = self.place(index);
            results.push(Err(Error::new(excess).context(place)));
        }
        results
    }
}

fn is_given_up(error: &Error) -> bool {
    error.is::<GivenUp>()
}
