//! `trl.pack_dataset`, and its padding-free collator.

use burnish::data::examples::{Document, Packing, SftExample, pack};
use serde_json::Value;

use super::setting::ids;
use crate::cases::golden_file;

#[test]
fn packed_units_are_trls_golden() {
    let all = golden_file("offline/packing.json");
    let cases = all["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let (mut next, mut documents) = (100, Vec::new());
        for length in ids(&case["lengths"]) {
            let ids: Vec<u32> = (next..next + length).collect();
            next += length;
            let weights = ids.iter().map(|id| if id % 3 == 0 { 0.0 } else { 1.0 }).collect();
            documents.push(Document { ids, weights });
        }
        let packing = match case["strategy"].as_str().unwrap() {
            "bfd" => Packing::Bfd,
            "bfd_split" => Packing::BfdSplit,
            "wrapped" => Packing::Wrapped,
            other => panic!("{other}"),
        };
        let units = pack(documents, packing, case["seq_length"].as_u64().unwrap() as usize);
        let joined = |unit: &SftExample| unit.documents.iter().flat_map(|document| document.ids.clone()).collect::<Vec<u32>>();
        let theirs: Vec<Vec<u32>> = case["input_ids"].as_array().unwrap().iter().map(ids).collect();
        let name = format!("{} {} {}", case["strategy"], case["seq_length"], case["lengths"]);
        assert_eq!(units.iter().map(joined).collect::<Vec<_>>(), theirs, "{name}");
        if let Some(lengths) = case.get("seq_lengths").and_then(Value::as_array) {
            let ours: Vec<Vec<u32>> =
                units.iter().map(|unit| unit.documents.iter().map(|document| document.ids.len() as u32).collect()).collect();
            assert_eq!(ours, lengths.iter().map(ids).collect::<Vec<_>>(), "{name}");
        }
        let Some(flat) = case.get("flattened_first_two_rows").filter(|flat| flat.is_object()) else { continue };
        // The first token of each document is given; the positions restart with it.
        let documents: Vec<&Document> = units.iter().take(2).flat_map(|unit| &unit.documents).collect();
        let labels: Vec<bool> =
            documents.iter().flat_map(|document| (0..document.ids.len()).map(|i| i > 0 && document.weights[i] != 0.0)).collect();
        assert_eq!(labels, super::setting::labelled(&flat["labels"][0]), "{name}");
        let positions: Vec<u32> = documents.iter().flat_map(|document| 0..document.ids.len() as u32).collect();
        assert_eq!(positions, ids(&flat["position_ids"][0]), "{name}");
    }
}
