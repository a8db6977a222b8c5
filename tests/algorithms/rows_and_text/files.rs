//! Files of rows: codecs, tables and numbers.

use burnish::util::python_tagged::float;

use super::*;

/// Files written by pyarrow in its codecs (`lz4` is LZ4_RAW), and one in Hadoop's LZ4 framing, which pyarrow no longer writes.
#[test]
fn parquet_is_read_in_every_codec() {
    let folder = tempfile::tempdir().unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parquet");
    let mut files: Vec<PathBuf> = fs::read_dir(samples).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 6);
    let old = folder.path().join("lz4-hadoop.parquet");
    let prompts: ArrayRef = Arc::new(StringArray::from(["1+1=", "2+2="].repeat(4)));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..8));
    let batch = RecordBatch::try_from_iter([("prompt", prompts), ("n", numbers)]).unwrap();
    let properties = WriterProperties::builder().set_compression(Compression::LZ4).build();
    let mut writer = ArrowWriter::try_new(fs::File::create(&old).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    files.push(old);
    let expected: Vec<Value> = (0..8).map(|n| json!({"prompt": if n % 2 == 0 { "1+1=" } else { "2+2=" }, "n": n})).collect();
    for file in files {
        let rows = read_rows(std::slice::from_ref(&file), &["prompt", "n"], &[]).unwrap();
        let rows: Vec<Value> = rows.into_iter().map(|row| Value::Object(row.values)).collect();
        assert_eq!(rows, expected, "{}", file.display());
    }
}

/// Rows of both kinds of files are written with an additional column, and read back unchanged.
#[test]
fn a_table_is_written_with_a_column_more() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        json!({"a": 1, "b": {"c": [1.5, 2], "d": null}, "e": "x", "r": "old"}),
        json!({"a": null, "b": {"c": [], "d": [{"f": true}]}, "e": "y", "r": "old"}),
        json!({"a": -3, "b": null, "e": null, "r": null}),
    ];
    let out = folder.path().join("deep/out.parquet");
    let replies = [json!(["p", "q"]), json!([]), json!(["é"])];
    RowTable::read(&jsonl(folder.path(), &rows)).unwrap().write_with(&out, "r", &replies).unwrap();
    let again = folder.path().join("again.parquet");
    RowTable::read(&[out.clone(), out]).unwrap().write_with(&again, "s", &[0, 1, 2, 3, 4, 5].map(Value::from)).unwrap();
    let read = read_rows(&[again], &["a", "b", "e", "r", "s"], &[]).unwrap();
    for (i, row) in read.iter().enumerate() {
        let mut expected = rows[i % 3].clone();
        expected["r"] = replies[i % 3].clone();
        expected["s"] = json!(i);
        if i % 3 == 0 {
            expected["b"]["c"] = json!([1.5, 2.0]);
        }
        assert_eq!(Value::Object(row.values.clone()), expected);
    }
    let mixed = jsonl(folder.path(), &[json!({"a": 1}), json!({"a": "x"})]);
    assert!(error(RowTable::read(&mixed).map(drop)).contains("column \"a\": the values have several types, such as 1 and \"x\""));
}

/// A file may declare bytes as text in its arrow schema, but not in its own: the parquet reader then trusts the arrow schema. The
/// bytes are checked, in every form of reading.
#[test]
fn bytes_that_are_called_text_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let write = |text: &[u8], kind: DataType| {
        let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"1+1=", text]));
        let batch = RecordBatch::try_from_iter([("prompt", bytes)]).unwrap();
        let mut properties = WriterProperties::default();
        add_encoded_arrow_schema_to_metadata(&Schema::new(vec![Field::new("prompt", kind, false)]), &mut properties);
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let file = fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    };
    let files = [path.clone()];
    for kind in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
        write("é".as_bytes(), kind.clone());
        assert_eq!(read_rows(&files, &["prompt"], &[]).unwrap()[1].values["prompt"], "é", "{kind}");
        write(b"\xff\xfe1+1=, and more bytes than a view holds", kind);
        for message in [error(read_rows(&files, &["prompt"], &[])), error(RowTable::read(&files).map(drop))] {
            assert!(message.contains("rows.parquet") && message.to_lowercase().contains("utf-8"), "{message}");
        }
    }
}

/// Integers beyond 64 bits and numbers that JSON lacks are read exactly or refused with their place, but never changed.
#[test]
fn numbers_are_read_as_they_are_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let read = |text: &str, column: &str| {
        fs::write(&path, text).unwrap();
        read_rows(std::slice::from_ref(&path), &[column], &[])
    };
    let fits = "\n{\"a\": [18446744073709551615, -9223372036854775808, 0.1], \"b\": {\"c\": 354224848179261915075}}\n";
    let rows = read(fits, "a").unwrap();
    assert_eq!(rows[0].values["a"].to_string(), "[18446744073709551615,-9223372036854775808,0.1]");
    let lines = fits.repeat(2);
    let array = format!("[{}, {{\"b\": -9223372036854775809}}]", "{\"b\": 1}");
    for (text, told) in [
        (lines.as_str(), "row 0, column \"b\": the integer 354224848179261915075 does not fit in 64 bits"),
        (&array, "row 1, column \"b\": the integer -9223372036854775809 does not fit"),
        ("{\"b\": 1e400}", "line 1 is not a JSON object: number out of range"),
        (&format!("{{\"b\": {}}}", "[".repeat(100_000)), "line 1 is not a JSON object: recursion limit exceeded"),
    ] {
        let message = error(read(text, "b"));
        assert!(message.contains("rows.jsonl") && message.contains(told), "{message}");
    }

    let numbers = |values: Vec<f64>| {
        let file = folder.path().join("rows.parquet");
        let column: ArrayRef = Arc::new(Float64Array::from(values));
        let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
        let mut writer = ArrowWriter::try_new(fs::File::create(&file).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        read_rows(&[file], &["x"], &[])
    };
    let rows = numbers(vec![f64::NAN, 0.1]).unwrap();
    assert_eq!([&rows[0].values["x"], &rows[1].values["x"]], [&Value::Null, &json!(0.1)]);
    assert_eq!(numbers(vec![f64::NEG_INFINITY]).unwrap()[0].values["x"], float(f64::NEG_INFINITY));

    // A column has one type when rows are written again. An integer that this type would change is an error, for every use of the
    // column.
    for (text, told) in [
        ("{\"x\": 9007199254740993}\n{\"x\": 0.5}", "9007199254740993 is mixed with floats"),
        ("{\"x\": 354224848179261915075}", "column \"x\": the integer 354224848179261915075"),
    ] {
        fs::write(&path, text).unwrap();
        let message = error(RowTable::read(std::slice::from_ref(&path)));
        assert!(message.contains(told), "{message}");
    }
}
