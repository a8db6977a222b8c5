//! Data files of every format and with every type, as `datasets` reads them.

use std::io::Write;

use arrow::array::{
    Date32Array, Decimal128Array, DurationMicrosecondArray, Int64Builder, MapBuilder, StringBuilder, Time64MicrosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
};
use burnish::reward::python::{CodeSource, Pool, PoolOptions, functions};
use burnish::reward::{Runs, ScoreInput};
use flate2::write::GzEncoder;

use super::*;

/// Files that `datasets` 5.2 reads, with the same rows.
#[test]
fn text_files_are_read_as_datasets_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let gzip = |text: &[u8]| {
        let mut writer = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    };
    let lines = b"{\"a\": 1, \"b\": \"x\"}\n{\"a\": 2, \"b\": null}\n".to_vec();
    let array = b"[{\"a\": 1, \"b\": \"x\"}, {\"a\": 2}]".to_vec();
    let marked = |text: &[u8]| ["\u{feff}".as_bytes(), text].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("rows.jsonl", lines.clone()),
        ("marked.jsonl", marked(&lines)),
        ("marked.json", marked(&array)),
        ("ROWS.JSONL", lines.clone()),
        ("rows.ndjson", lines.clone()),
        ("rows.jsonl.gz", gzip(&lines)),
        ("parts.jsonl.gz", [gzip(&lines[..21]), gzip(&lines[21..])].concat()),
        ("rows.json.GZ", gzip(&marked(&array))),
        ("joined.jsonl", b"{\"a\": 1, \"b\": \"x\"}{\"a\": 2}".to_vec()),
        ("pretty.jsonl", b"{\n  \"a\": 1,\n  \"b\": \"x\"\n}\n{\n  \"a\": 2\n}\n".to_vec()),
        ("unread.jsonl", b"{\"a\": 1, \"b\": \"x\", \"c\": NaN}\n{\"a\": 2, \"c\": [-Infinity]}".to_vec()),
        ("missing.json", b"[{\"a\": 1, \"b\": \"x\"}, {\"a\": 2, \"b\": NaN}]".to_vec()),
        ("large.jsonl", b"{\"a\": 1, \"b\": \"x\", \"c\": NaN}{\"a\": 2, \"c\": 354224848179261915075}".to_vec()),
        ("rows.csv", b"a,b\n1,x\n2,\n".to_vec()),
        ("marked.csv.gz", gzip(&marked(b"a,b\r\n1,x\r\n2,\r\n"))),
    ];
    for (name, bytes) in cases {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let rows = read_rows(std::slice::from_ref(&path), &["a"], &["b"]).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        let values = |column: &str| rows.iter().map(|row| row.values.get(column).cloned().unwrap_or_default()).collect();
        let (a, b): (Vec<Value>, Vec<Value>) = (values("a"), values("b"));
        assert_eq!((a, b), (vec![json!(1), json!(2)], vec![json!("x"), json!(null)]), "{name}");
        if !["large.jsonl", "unread.jsonl"].contains(&name) {
            assert_eq!(RowTable::read(&[path]).unwrap().len(), 2, "{name}");
        }
    }
    for (name, text, told) in [
        ("trailing.jsonl", "{\"a\": 1,}", "line 1 is not a JSON object"),
        ("open.jsonl", "{\"a\": NaN}\n{\"a\": \"x}\n", "line 2 is not a JSON object"),
        ("words.jsonl", "{\"a\": Nan}", "line 1 is not a JSON object"),
        ("short.csv", "a,b\n1\n", "record 1"),
        ("bad.jsonl.gz", "{\"a\": 1}", "gzip"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let message = error(read_rows(&[path], &["a"], &[]));
        assert!(message.contains(name) && message.contains(told), "{message}");
    }
}

/// Functions get the types that `datasets` gives to values that JSON lacks; such columns have no other readers.
#[test]
fn columns_of_every_type_are_handed_to_functions() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let text = |values: &[&str]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let instants = TimestampMicrosecondArray::from(vec![Some(1_738_285_323_456_789), None]);
    let zoned = TimestampMillisecondArray::from(vec![Some(1_738_285_323_000), None]).with_timezone("+01:00");
    let decimals = Decimal128Array::from(vec![Some(150), None]).with_precision_and_scale(10, 2).unwrap();
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    maps.keys().append_value("k");
    maps.values().append_value(1);
    maps.append(true).unwrap();
    maps.append(false).unwrap();
    let columns: [(&str, ArrayRef, [&str; 2]); 10] = [
        ("instant", Arc::new(instants), ["datetime.datetime(2025, 1, 31, 1, 2, 3, 456789)", "None"]),
        (
            "zoned",
            Arc::new(zoned),
            ["datetime.datetime(2025, 1, 31, 2, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(seconds=3600)))", "None"],
        ),
        (
            "nanos",
            Arc::new(TimestampNanosecondArray::from(vec![1001, -1])),
            ["datetime.datetime(1970, 1, 1, 0, 0, 0, 1)", "datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)"],
        ),
        ("day", Arc::new(Date32Array::from(vec![20_119, -1])), ["datetime.date(2025, 1, 31)", "datetime.date(1969, 12, 31)"]),
        (
            "time",
            Arc::new(Time64MicrosecondArray::from(vec![3_723_000_004, 0])),
            ["datetime.time(1, 2, 3, 4)", "datetime.time(0, 0)"],
        ),
        (
            "took",
            Arc::new(DurationMicrosecondArray::from(vec![86_400_000_005, 0])),
            ["datetime.timedelta(days=1, microseconds=5)", "datetime.timedelta(0)"],
        ),
        ("price", Arc::new(decimals), ["Decimal('1.50')", "None"]),
        ("raw", Arc::new(BinaryArray::from(vec![Some(&b"\x00\xff"[..]), None])), ["b'\\x00\\xff'", "None"]),
        ("map", Arc::new(maps.finish()), ["{'k': 1}", "None"]),
        ("float", Arc::new(Float64Array::from(vec![f64::NAN, f64::NEG_INFINITY])), ["nan", "-inf"]),
    ];
    let parquet = folder.path().join("rows.parquet");
    let named = columns.iter().map(|(name, column, _)| (*name, column.clone()));
    let batch = RecordBatch::try_from_iter([("prompt", text(&["1", "2"]))].into_iter().chain(named)).unwrap();
    write_batches(&parquet, batch.schema(), [Ok(batch)]).unwrap();
    let jsonl = jsonl(folder.path(), &[]).remove(0);
    fs::write(&jsonl, "{\"prompt\": \"1\", \"float\": NaN}\n{\"prompt\": \"2\", \"float\": -Infinity}\n").unwrap();
    let reward = folder.path().join("reward.py");
    let code = "def f(completions, log_extra, **columns):\n    for name in set(columns) - {'trainer_state', 'log_metric'}:\n        \
                log_extra(name, [repr(v) for v in columns[name]])\n    return [0.0] * len(completions)\n";
    fs::write(&reward, code).unwrap();
    let path = reward.display().to_string();
    let source = CodeSource::File { path, names: vec!["f".into()], reward_kwargs: Map::new(), positional: false };
    let pool = Arc::new(Pool::start(source, PoolOptions::default()).unwrap());
    let Runs::Together(function) = functions(&pool).remove(0).runs else { panic!("a function of a batch") };
    for (file, names) in [(&parquet, columns.each_ref().map(|(name, ..)| *name).to_vec()), (&jsonl, vec!["float"])] {
        let needs = RowNeeds { columns: true, ..RowNeeds::default() };
        let prompts = load_prompts(std::slice::from_ref(file), &tokenizer, &PromptOptions { needs, ..options() }).unwrap();
        let inputs: Vec<ScoreInput> =
            prompts.iter().map(|prompt| ScoreInput { columns: &prompt.columns, ..Default::default() }).collect();
        let scores = function.score(&inputs).unwrap();
        for (name, _, expected) in columns.iter().filter(|(name, ..)| names.contains(name)) {
            let seen = scores.iter().map(|score| &score.notes.iter().find(|(note, _)| note == name).unwrap().1);
            assert_eq!(seen.collect::<Vec<_>>(), expected, "{} {name}", file.display());
        }
    }
    // Without a function that reads them, the same rows are prompts.
    let plain = PromptOptions { needs: RowNeeds::default(), ..options() };
    assert_eq!(load_prompts(&[parquet], &tokenizer, &plain).unwrap().len(), 2);
}
