//! Advantages and returns of every estimator.

use burnish::algorithm::advantage::{self, AdvantageInput, AdvantageOptions};

use super::{Case, assert_close, goldens, number};

#[test]
fn golden_advantages() {
    let goldens = goldens();
    let mut seen = 0;
    for case in Case::all(&goldens) {
        let group: Vec<usize> = case.json["uid"].as_array().unwrap().iter().map(|u| number(u) as usize).collect();
        for (key, result) in case.results("advantage") {
            let Some(estimator) = advantage::find(key.split('|').next().unwrap()) else { continue };
            let output = (estimator.run)(&AdvantageInput {
                offsets: &case.offsets,
                rewards: &case.input("token_level_rewards"),
                mask: &case.mask,
                group: &group,
                options: AdvantageOptions {
                    gamma: number(&case.json["gamma"]),
                    norm_adv_by_std_in_grpo: !key.ends_with("norm_adv_by_std_in_grpo=False"),
                    ..Default::default()
                },
                ..Default::default()
            });
            let what = format!("{} {key}", case.name);
            assert_close(&format!("{what} advantages"), &output.advantages, &case.column(&result["advantages"]));
            assert_close(&format!("{what} returns"), &output.returns, &case.column(&result["returns"]));
            seen += 1;
        }
    }
    assert!(seen > 0);
}
