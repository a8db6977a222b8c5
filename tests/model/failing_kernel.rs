//! A kernel that cannot be compiled ends the process: a later read would return uninitialized memory.

use std::process::Command;

use burn::tensor::{FloatDType, Tensor};

use crate::device::{VARIABLE, named_device};

#[test]
fn a_kernel_that_fails_ends_the_process_with_a_sentence() {
    const TEST: &str = "failing_kernel::a_kernel_that_fails_ends_the_process_with_a_sentence";
    const ALONE: &str = "BURNISH_FAILING_KERNEL_ALONE";
    let Some(device) = named_device(TEST) else { return };
    if burnish::model::gpu_backends::has_bfloat16(&device) {
        println!("skipped: this device computes in bfloat16");
        return;
    }
    if std::env::var_os(ALONE).is_some() {
        let x = Tensor::<2>::ones([16, 16], &device).cast(FloatDType::BF16);
        println!("continued with {}", x.clone().matmul(x).sum().into_data());
        return;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let again = again.args([TEST, "--exact", "--nocapture", "--test-threads=1"]).env(ALONE, "1").output().unwrap();
    let messages = [&again.stdout, &again.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    let name = std::env::var(VARIABLE).unwrap();
    assert_eq!(again.status.code(), Some(1), "{messages:?}");
    assert!(!messages[0].contains("continued"), "{}", messages[0]);
    for words in [format!("error: {name}"), "a kernel failed".to_owned(), "`trainer devices` lists them".to_owned()] {
        assert!(messages[1].contains(&words), "no `{words}` in: {}", messages[1]);
    }
}
