//! The functions for other systems must agree with `/proc`.

use std::process::Command;
use std::time::Duration;

use super::{linux, other, posix};

/// Returns true if two sizes have one unit. Other tests allocate meanwhile, so they are not equal.
fn have_one_unit(one: Option<u64>, two: Option<u64>) -> bool {
    let (Some(one), Some(two)) = (one, two) else { return false };
    (one / 100..one * 100).contains(&two)
}

#[test]
fn other_systems_answer_in_the_same_units() {
    assert_eq!((linux::memory_total(), linux::swap_total()), (other::memory_total(), other::swap_total()));
    // Linux counts the program that this one replaced, cargo, in `ru_maxrss`.
    let seen = [
        ("available", linux::memory_available(), other::memory_available()),
        ("own", linux::own_memory(), other::own_memory()),
        ("peak", linux::peak_memory(), posix::peak_memory()),
    ];
    for (name, of_linux, of_others) in seen {
        assert!(have_one_unit(of_linux, of_others), "{name}: {of_linux:?}, {of_others:?}");
    }
    let times = [linux::own_cpu_time().unwrap(), other::own_cpu_time().unwrap()];
    assert!(times[0].abs_diff(times[1]) < Duration::from_millis(500), "{times:?}");
    // Rust ignores SIGPIPE in every program.
    let signals = [libc::SIGPIPE, libc::SIGCHLD];
    assert_eq!(signals.map(linux::is_ignored), [Some(true), Some(false)]);
    assert_eq!(signals.map(posix::is_ignored), [Some(true), Some(false)]);
}

#[test]
fn a_process_has_one_name_until_it_ends() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let names = || [linux::process_name(child.id()), other::process_name(child.id())];
    let first = names();
    assert!(first.iter().flatten().count() == 2 && names() == first, "{first:?}");
    for name in first.iter().flatten() {
        assert_eq!(name.split(' ').nth(1), Some(child.id().to_string().as_str()), "{name}");
    }
    assert!(linux::is_running(child.id()) && other::is_running(child.id()));
    let end = linux::end_of_process(child.id()).unwrap();
    super::kill(child.id());
    rustix::event::poll(&mut [rustix::event::PollFd::new(&end, rustix::event::PollFlags::IN)], None).unwrap();
    // A zombie: its parent has not yet collected the exit code.
    assert!(super::has_ended(child.id()));
    assert_eq!([linux::process_name(child.id()), other::process_name(child.id())], [None, None]);
    assert!(linux::is_running(child.id()) && other::is_running(child.id()));
    child.wait().unwrap();
    assert!(!linux::is_running(child.id()) && !other::is_running(child.id()));
}
