//! Parallel work on every row. A row becomes JSON when it is needed, and untrusted code such as a chat template runs on contained
//! threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Error, Result};
use rayon::prelude::*;

use super::row_selection::{Malformed, OnMalformed, TooLongError};
use super::rows::{FileRows, Row};
use crate::template::limits::{RENDERING, TemplateLimitError};
use burnish_util::contained::{BEFORE_PART, ContainedError, WorkLimits, caught, contained};

/// Number of rows per work item of a thread, since handing over takes as long as some rows.
const TOGETHER: usize = 64;

/// The limits of a work item: only the stack, with room for a template, which has its own limits.
const WORK: WorkLimits = WorkLimits { memory: usize::MAX, time: None, stack: RENDERING.stack + BEFORE_PART };

impl FileRows {
    /// Calls `work` with the position of each row in all files and the row. Returns the results in order. Errors name the row's
    /// place.
    ///
    /// # Errors
    /// The error of the first row that cannot be read or processed.
    pub fn each<T, F>(&self, work: F) -> Result<Vec<T>>
    where
        T: Send + 'static,
        F: Fn(usize, Row) -> Result<T> + Send + Sync + 'static,
    {
        Ok(self.each_or(OnMalformed::Error, work)?.0)
    }

    /// Like [`FileRows::each`], but treats a failed row according to `on_malformed`, and counts skipped rows.
    ///
    /// # Errors
    /// The error of the first row that may not be skipped. A `TooLongError` is never skipped.
    pub fn each_or<T, F>(&self, on_malformed: OnMalformed, work: F) -> Result<(Vec<T>, Malformed)>
    where
        T: Send + 'static,
        F: Fn(usize, Row) -> Result<T> + Send + Sync + 'static,
    {
        let skips = move |error: &Error| {
            on_malformed == OnMalformed::Skip
                && !exceeds_limits(error)
                && !error.is::<ContainedError>()
                && !error.is::<TooLongError>()
        };
        let (work, failed) = (Arc::new(work), Arc::new(AtomicUsize::new(usize::MAX)));
        let count = self.chosen();
        let chunks: Vec<Range<usize>> = (0..count).step_by(TOGETHER).map(|start| start..(start + TOGETHER).min(count)).collect();
        // All rows before a failed one are processed, so the same file always gives the same error.
        let results = chunks.into_par_iter().flat_map_iter(|chunk| self.some(chunk, skips, work.clone(), failed.clone()));
        let (mut done, mut malformed, mut first) = (Vec::with_capacity(count), Malformed::default(), None);
        for result in results.collect::<Vec<Result<T>>>() {
            match result {
                Ok(result) => done.push(result),
                Err(error) if skips(&error) => malformed.add(&error),
                // A template that was too slow on another row may work on this row.
                Err(error) if first.as_ref().is_none_or(|first| exceeds_limits(first) && !exceeds_limits(&error)) => {
                    first = Some(error)
                }
                Err(_) => {}
            }
        }
        first.map_or(Ok((done, malformed)), Err)
    }

    /// Returns the results of some rows, up to a fatal error. `skips`: decides which errors are not fatal; `failed`: first row
    /// known to fail, after which rows are not processed.
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
                    if result.as_ref().is_err_and(|error| !exceeds_limits(error) && !skips(error)) {
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

fn exceeds_limits(error: &Error) -> bool {
    error.is::<TemplateLimitError>()
}
