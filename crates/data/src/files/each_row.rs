//! Work on every row, in parallel: a row becomes JSON when its turn comes, and what others wrote, such as a chat template, is run
//! on threads on which it can do no harm.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Error, Result};
use rayon::prelude::*;

use super::row_selection::{Malformed, OnMalformed, TooLongError};
use super::rows::{Row, Rows};
use crate::template::limits::{GivenUpError, RENDERING};
use burnish_util::contained::{BEFORE_PART, ContainedError, Limits, caught, contained};

/// The number of rows that one thread works on before it takes others; to hand them over takes as long as some rows.
const TOGETHER: usize = 64;

/// The bounds of the work on some rows: none but the stack, which has room for a template, whose bounds are its own.
const WORK: Limits = Limits { memory: usize::MAX, time: None, stack: RENDERING.stack + BEFORE_PART };

impl Rows {
    /// Calls `work` with the position of each row in all files and the row, and returns the results in order. Errors of `work`
    /// get the row's place.
    ///
    /// # Errors
    /// The first row's, in the order of the rows, that cannot be read or worked on.
    pub fn each<T, F>(&self, work: F) -> Result<Vec<T>>
    where
        T: Send + 'static,
        F: Fn(usize, Row) -> Result<T> + Send + Sync + 'static,
    {
        Ok(self.each_or(OnMalformed::Error, work)?.0)
    }

    /// Does the work of [`Rows::each`]. A row on which it fails is treated as `on_malformed` says: the rows that are left out are
    /// counted.
    ///
    /// # Errors
    /// The first row's that is an error: of rows that may be left out, those that a setting of their own decides about.
    pub fn each_or<T, F>(&self, on_malformed: OnMalformed, work: F) -> Result<(Vec<T>, Malformed)>
    where
        T: Send + 'static,
        F: Fn(usize, Row) -> Result<T> + Send + Sync + 'static,
    {
        let skips = move |error: &Error| {
            on_malformed == OnMalformed::Skip
                && !is_given_up(error)
                && !error.is::<ContainedError>()
                && !error.is::<TooLongError>()
        };
        let (work, failed) = (Arc::new(work), Arc::new(AtomicUsize::new(usize::MAX)));
        let count = self.chosen();
        let chunks: Vec<Range<usize>> = (0..count).step_by(TOGETHER).map(|start| start..(start + TOGETHER).min(count)).collect();
        // All rows before one that fails are worked on, so that the same file always gives the same error.
        let results = chunks.into_par_iter().flat_map_iter(|chunk| self.some(chunk, skips, work.clone(), failed.clone()));
        let (mut done, mut malformed, mut first) = (Vec::with_capacity(count), Malformed::default(), None);
        for result in results.collect::<Vec<Result<T>>>() {
            match result {
                Ok(result) => done.push(result),
                Err(error) if skips(&error) => malformed.add(&error),
                // A template that another row made to be given up says nothing about this one.
                Err(error) if first.as_ref().is_none_or(|first| is_given_up(first) && !is_given_up(&error)) => {
                    first = Some(error)
                }
                Err(_) => {}
            }
        }
        first.map_or(Ok((done, malformed)), Err)
    }

    /// Returns the results of some rows, up to one that ends the work. `skips`: says which errors do not; `failed`: the first row
    /// known to fail, after which rows are left out.
    fn some<T, F>(
        &self,
        chunk: Range<usize>,
        skips: impl Fn(&Error) -> bool + Send + 'static,
        work: Arc<F>,
        failed: Arc<AtomicUsize>,
    ) -> Vec<Result<T>>
    where
        T: Send + 'static,
        F: Fn(usize, Row) -> Result<T> + Send + Sync + 'static,
    {
        let (rows, start) = (self.clone(), chunk.start);
        let results = Arc::new(Mutex::new(Vec::with_capacity(chunk.len())));
        let each = {
            let (results, failed) = (results.clone(), failed.clone());
            move || {
                for at in chunk.take_while(|at| *at <= failed.load(Ordering::Relaxed)) {
                    let index = rows.position(at);
                    let place = || rows.place(index);
                    let one = || rows.row(index).and_then(|row| work(index, row).with_context(place));
                    let result = caught(one).unwrap_or_else(|excess| Err(Error::new(excess).context(place())));
                    if result.as_ref().is_err_and(|error| !is_given_up(error) && !skips(error)) {
                        failed.fetch_min(at, Ordering::Relaxed);
                    }
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                }
            }
        };
        let ended = contained(WORK, each);
        let mut results = std::mem::take(&mut *results.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(excess) = ended {
            let at = start + results.len();
            failed.fetch_min(at, Ordering::Relaxed);
            let place = self.place(self.position(at));
            results.push(Err(Error::new(excess).context(place)));
        }
        results
    }
}

fn is_given_up(error: &Error) -> bool {
    error.is::<GivenUpError>()
}
