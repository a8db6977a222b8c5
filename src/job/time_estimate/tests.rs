//! The counts at the shapes of Qwen2.5-0.5B, and properties of the times made of them.

use std::collections::BTreeMap;

use serde_json::json;

use super::budgets::{DECODE_LAYER, DECODE_REST};
use super::cards::{CARDS, Card, Kind};
use super::work::{Bound, Work};
use super::{Costs, Generation, Sequences, TimeEstimate, Tokens};
use burnish_model::hf_config::HfConfig;
use burnish_model::{Cut, DecoderConfig};
use burnish_optim::{OPTIMIZERS, Optimizer, Settings};

const GIB: u128 = 1 << 30;

fn qwen() -> DecoderConfig {
    let json = json!({
        "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "vocab_size": 151_936, "max_position_embeddings": 32_768, "rms_norm_eps": 1e-6,
        "rope_theta": 1e6, "hidden_act": "silu", "tie_word_embeddings": true,
    });
    HfConfig::from_json(json.as_object().unwrap().clone()).decoder().unwrap()
}

fn adamw() -> Optimizer {
    let settings =
        Settings { lr: 1e-6, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.0, no_decay: vec![], options: BTreeMap::new() };
    OPTIMIZERS[0].build(&settings).unwrap()
}

/// 32 prompts of 512 tokens with 8 responses of 1,024 each, which decode side by side.
const ROLLOUT: Generation = Generation { prompts: 32, samples: 8, slots: 256, prompt: 512, response: 1024, budget: 8192 };

fn sequences(count: usize, micro: usize) -> Sequences {
    Sequences { count, prompt: 512, response: 1024, together: 8, slices: 1, cut: Cut::Sequences(micro) }
}

fn step(bfloat16: bool) -> TimeEstimate {
    let (costs, frozen) = (Costs::of(&qwen(), None, false), Costs::of(&qwen(), None, false));
    let mut time = TimeEstimate::new("a step", bfloat16, 1);
    time.generation("gen", &costs, ROLLOUT);
    time.pass("old_log_prob", &costs, sequences(256, 32).tokens());
    time.pass("ref", &frozen, sequences(256, 32).tokens());
    time.update("update_actor", &costs, sequences(64, 16).tokens(), 4, &adamw(), &[]);
    time
}

#[test]
fn a_decode_step_reads_the_weights_once_and_every_key() {
    let decode = Costs::of(&qwen(), None, false).decode(ROLLOUT, 2.0) * (1.0 / 1024.0);
    assert_eq!((decode.replayed, decode.launches), (24.0 * DECODE_LAYER + DECODE_REST, 1.0));
    // 494 million numbers of matrices; keys and values of 256 rows at a mean length of 1,024.5; logits written and read.
    let (weights, cache, logits) = (2.0 * 493.9e6, 256.0 * 1024.5 * (2.0 * 24.0 * 128.0) * 2.0, 256.0 * 151_936.0 * 8.0);
    assert!((decode.bytes / (weights + cache + logits) - 1.0).abs() < 1e-3, "{decode:?}");
    // Twice the numbers of the matrices and 4 · 24 · 896 for every key, for each of 256 tokens.
    let flop = 256.0 * (2.0 * 493.9e6 + 4.0 * 24.0 * 896.0 * 1024.5);
    assert!((decode.flop / flop - 1.0).abs() < 1e-3, "{decode:?}");
    // 0.45 ms of replayed kernels, which would be 1.5 ms of launches; the bytes take 1.18 ms of an H200.
    let launched = Work { launches: decode.replayed, replayed: 0.0, ..decode };
    let bound = |work| CARDS[0].seconds(work, Kind::Decode, true).1;
    assert_eq!([bound(decode), bound(launched)], [Bound::Bandwidth, Bound::Launches]);
}

#[test]
fn an_update_has_three_times_the_flop_of_a_pass_and_four_with_checkpointing() {
    let tokens = sequences(64, 16).tokens();
    assert_eq!((tokens.rows, tokens.predicted, tokens.micro_batches), (8.0 * 512.0 + 64.0 * 1024.0, 65_536.0, 4.0));
    let of = |checkpointing| Costs::of(&qwen(), None, checkpointing);
    let head = 2.0 * 896.0 * 151_936.0 * tokens.predicted;
    let forward = of(false).forward(tokens, 2.0).flop;
    let (plain, again) = (of(false).backward(tokens, 2.0).flop, of(true).backward(tokens, 2.0).flop);
    // The head's logits are made a second time.
    assert!(((forward + plain) / (3.0 * forward + head) - 1.0).abs() < 1e-9);
    assert!(((forward + again) / (4.0 * forward) - 1.0).abs() < 1e-9);
    // 28 bytes for each parameter, and once more its gradient, for the norm.
    let update = of(false).update(&adamw(), 1);
    assert_eq!(update.bytes, 32.0 * qwen().num_parameters() as f64);
}

#[test]
fn attention_multiplies_ranges_of_queries_with_the_keys_up_to_their_end() {
    let of = |length| Tokens::of(length, 0);
    assert_eq!(of(500).scores, 500.0 * 500.0);
    assert_eq!(of(1280).scores, 512.0 * 512.0 + 512.0 * 1024.0 + 256.0 * 1280.0);
    let after_a_prompt = Sequences { count: 1, prompt: 100, response: 700, together: 1, slices: 1, cut: Cut::Sequences(1) };
    assert_eq!(after_a_prompt.tokens().scores, 100.0 * 100.0 + 512.0 * 612.0 + 188.0 * 800.0);
    // 24 layers of 14 heads of 64; scores pass six times in bfloat16. On the chip, only keys that are seen are multiplied.
    let (costs, tokens) = (Costs::of(&qwen(), None, false), of(16_384));
    let (held, chip) = (costs.forward(tokens, 2.0), costs.forward(Tokens { scores: 0.0, ..tokens }, 2.0));
    let scores = 16_384.0 * (16_384.0 + 512.0) / 2.0;
    let near = |value: f64, of: f64| assert!((value / of - 1.0).abs() < 1e-9, "{value}, not {of}");
    near(held.bytes - chip.bytes, 24.0 * 14.0 * scores * 2.0 * 6.0);
    near(held.flop - chip.flop, 4.0 * 24.0 * 896.0 * (scores - tokens.keys));
    // A window leaves 1,000 keys and those of the range.
    let near_ones = DecoderConfig { windows: vec![Some(1000); 24], ..qwen() };
    let windowed = Costs::of(&near_ones, None, false).forward(tokens, 2.0);
    near(windowed.bytes - chip.bytes, 24.0 * 14.0 * 16_384.0 * 1512.0 * 2.0 * 6.0);
}

#[test]
fn a_phase_waits_for_what_it_has_most_of() {
    let card = &CARDS[0];
    let small = Work { launches: 1.0, replayed: 1.0, bytes: 1.0, flop: 1.0 };
    for (work, bound, seconds) in [
        (Work { launches: 1e6, ..small }, Bound::Launches, 5.0000015),
        (Work { replayed: 1e6, ..small }, Bound::Launches, 1.500005),
        (Work { bytes: card.bandwidth, ..small }, Bound::Bandwidth, 1.25),
        (Work { flop: 989e12, ..small }, Bound::Flop, 2.0),
    ] {
        let (time, by) = card.seconds(work, Kind::Training, true);
        assert!(by == bound && (time / seconds - 1.0).abs() < 1e-9, "{work:?}: {time} s by {by:?}");
    }
}

#[test]
fn a_better_card_is_never_slower_and_more_work_never_faster() {
    let all = |card: &Card, bfloat16| step(bfloat16).seconds(card, |_| true);
    for card in CARDS {
        let Card { bfloat16, float32, bandwidth, .. } = *card;
        let better = [
            Card { bandwidth: 2.0 * bandwidth, ..*card },
            Card { bfloat16: bfloat16.map(|flop| 2.0 * flop), ..*card },
            Card { float32: 2.0 * float32, ..*card },
        ];
        for better in better {
            for numbers in [true, false] {
                assert!(all(&better, numbers) <= all(card, numbers), "{}", card.name);
            }
        }
        assert!(all(card, true) <= all(card, false), "{}: bfloat16 is slower", card.name);
    }
    let costs = Costs::of(&qwen(), None, false);
    let grown =
        [sequences(64, 32), sequences(64, 16), sequences(65, 16), sequences(128, 16)].map(|s| costs.forward(s.tokens(), 2.0));
    for pair in grown.windows(2) {
        assert!(
            pair[0].launches <= pair[1].launches && pair[0].bytes <= pair[1].bytes && pair[0].flop <= pair[1].flop,
            "{pair:?}"
        );
    }
}

#[test]
fn the_page_has_every_card_and_every_phase_of_the_first() {
    let page = step(true).page(20 * GIB);
    println!("{page}");
    let row =
        |name: &str| page.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{name}: {page}"));
    assert!(CARDS.iter().all(|card| row(card.name).contains(" tokens/s")), "{page}");
    assert!(row("T4").contains("float32") && row("T4").contains("does not fit: 20.0 of 15 GiB"), "{page}");
    assert!(row("H200").contains("bfloat16") && row("H200").contains(" fits: 20.0 of 140 GiB"), "{page}");
    for phase in ["gen, prefill", "gen, decode", "old_log_prob", "ref", "update_actor, backward", "update_actor, optimizer"] {
        assert!(["launches", "bandwidth", "FLOP"].iter().any(|bound| row(phase).ends_with(bound)), "{page}");
    }
    // A stage generates nothing.
    let mut stage = TimeEstimate::new("a step", true, 2);
    stage.update("update", &Costs::of(&qwen(), None, true), sequences(64, 16).tokens(), 1, &adamw(), &[]);
    let page = stage.page(GIB);
    assert!(!page.contains("tokens/s") && !page.contains("generation") && page.contains("in each process"), "{page}");
}
