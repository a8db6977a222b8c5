//! Available devices, and the reasons why a device is refused.

use crate::common::{succeed, trainer};

/// The lines of `trainer devices`, without the head.
fn listed() -> Vec<String> {
    let mut command = trainer(&["devices"]);
    // Nothing asks burn for its default device.
    command.env("BURN_DEVICE", "none");
    let text = String::from_utf8(succeed(command).stdout).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn the_processor_and_every_interface_are_listed() {
    let lines = listed();
    assert!(lines[0].starts_with("cpu ") && lines[0].contains("yes"), "{lines:?}");
    for (interface, built_in) in [
        ("cuda", cfg!(feature = "cuda")),
        ("rocm", cfg!(feature = "rocm")),
        ("metal", cfg!(feature = "metal")),
        ("vulkan", cfg!(feature = "vulkan")),
        ("wgpu", cfg!(feature = "wgpu")),
    ] {
        let own: Vec<&String> = lines.iter().filter(|line| line.starts_with(interface)).collect();
        let lacks = own.iter().any(|line| line.contains(&format!("--features {interface}")));
        assert!(!own.is_empty() && lacks != built_in, "{interface}: {lines:?}");
    }
}

/// Mesa's software driver computes in float32 and not in bfloat16; a machine without a driver for Vulkan has nothing to test.
#[cfg(feature = "wgpu")]
#[test]
fn a_device_is_refused_for_a_number_that_it_lacks_and_for_a_format() {
    let lines = listed();
    let Some(first) = lines.iter().find(|line| line.starts_with("wgpu:0 ")) else {
        eprintln!("skipped: {lines:?}");
        return;
    };
    if first.contains("llvmpipe") {
        assert!(first.contains("software"), "{first}");
        let formats: Vec<&str> = first.split_whitespace().filter(|word| ["yes", "no"].contains(word)).collect();
        assert_eq!(formats[..2], ["yes", "no"], "{first}");
    }
    let folder = tempfile::tempdir().unwrap();
    let run = format!("trainer.default_local_dir={}", folder.path().join("run").display());
    let refused = |args: &[&str]| {
        let mut command = trainer(args);
        let output = command.arg(&run).env("BURN_DEVICE", "none").env("XDG_RUNTIME_DIR", folder.path()).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(!message.contains("panicked"), "{args:?}: {message}");
        message
    };
    let none = refused(&["trainer.device=wgpu:99"]);
    assert!(none.contains("error: trainer.device=wgpu:99: wgpu finds ") && none.contains("wgpu:0 ("), "{none}");
    if first.contains("llvmpipe") {
        for args in [&["sft"][..], &["sft", "--dry-run=plan"]] {
            let format =
                refused(&[args, &["--config", "sft_trainer.yaml", "trainer.device=wgpu", "model.dtype=bfloat16"]].concat());
            assert!(format.contains("error: model.dtype=bfloat16: wgpu:0 does not compute in bfloat16"), "{format}");
        }
        let format = refused(&["trainer.device=wgpu", "algorithm.adv_estimator=gae", "critic.model.dtype=bfloat16"]);
        assert!(format.contains("error: critic.model.dtype=bfloat16: wgpu:0 does not compute in bfloat16"), "{format}");
    }
}
