//! Division of a machine's cores among the processes on it.

use std::{env, process, thread};

use rayon::ThreadPoolBuilder;

use burnish_util::platform::{allowed_cores, parent_id};

/// Limits this process to its share of the machine's cores. Without that, rayon, on whose threads all arithmetic runs, starts as
/// many threads in each process as there are cores. `RAYON_NUM_THREADS` takes precedence. Must be called before rayon is used.
/// `local` is the index of this process on the machine, and their number; `by_mpirun` is true if Open MPI's launcher started it.
pub(crate) fn share_out((index, count): (usize, usize), by_mpirun: bool) {
    let usable = thread::available_parallelism().map_or(1, usize::from);
    // The launcher itself is not pinned to a core.
    let of_parent = || parent_id().and_then(allowed_cores);
    let own = allowed_cores(process::id());
    let all = of_parent().filter(|all| own.is_some_and(|own| own < *all)).unwrap_or(usable);
    let part = threads(usable, all, count);
    if by_mpirun && index == 0 && usable < all / count {
        tracing::warn!(
            "mpirun pins each process to {usable} of this machine's {all} cores, but {} are its share: add --bind-to none",
            all / count
        );
    }
    if part < usable
        && env::var_os("RAYON_NUM_THREADS").is_none()
        && ThreadPoolBuilder::new().num_threads(part).build_global().is_err()
    {
        tracing::warn!(
            "each process computes on {usable} threads, because they already run: set RAYON_NUM_THREADS={part}, its share"
        );
    }
}

/// Returns the number of threads of each of `count` processes, which may use `usable` cores each, and all together `all`.
fn threads(usable: usize, all: usize, count: usize) -> usize {
    usable.min(all / count).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_share_cores() {
        // Not pinned, pinned to a core, pinned to one of two sockets, and more processes than cores.
        assert_eq!([threads(16, 16, 4), threads(1, 16, 2), threads(8, 16, 4), threads(2, 2, 3)], [4, 1, 4, 1]);
    }
}
