//! The page's data: one JSON value of one or several runs. Reading a file that has grown continues where the last reading ended.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use super::record::RecordedRun;
use super::samples::SamplePositions;
use super::series::Series;
use super::tail::Tail;
use burnish_run::SAMPLES;
use burnish_util::time::unix_time;

/// Largest number of bytes of the page that the samples of all runs may take.
const ROOM: usize = 20 << 20;

/// A run whose files are being read.
#[derive(Debug)]
struct Source {
    dir: PathBuf,
    series: Series,
    metrics: Tail,
    samples: SamplePositions,
    samples_file: Tail,
}

impl Source {
    fn new(dir: PathBuf) -> Self {
        let samples_file = Tail::new(dir.join(SAMPLES));
        let metrics = Tail::new(PathBuf::new());
        Self { dir, series: Series::default(), metrics, samples: SamplePositions::default(), samples_file }
    }

    fn refresh(&mut self, record: &RecordedRun) -> Result<()> {
        self.metrics.point(record.metrics.clone(), &mut self.series);
        self.metrics.read(&mut self.series)?;
        self.samples_file.read(&mut self.samples)
    }

    /// Appends the run.
    fn write(&self, record: &RecordedRun, name: &str, room: usize, out: &mut String) -> Result<()> {
        let mut head = record.head(&self.series);
        head["name"] = json!(name);
        let head = head.to_string();
        out.push_str(head.strip_suffix('}').unwrap_or(&head));
        out.push_str(",\"metrics\":");
        self.series.write(out);
        out.push_str(",\"samples\":");
        let file = self.samples_file.file();
        let omitted =
            self.samples.write(file, room, out).with_context(|| format!("cannot read {}", self.samples_file.path().display()))?;
        let config = record.info.as_ref().map(|info| &info.config[..]).unwrap_or_default();
        let rest = json!({"omitted": omitted, "config": config}).to_string();
        out.push(',');
        out.push_str(rest.strip_prefix('{').unwrap_or(&rest));
        Ok(())
    }
}

/// Runs that are shown together.
#[derive(Debug)]
pub struct Gather(Vec<Source>);

/// Data of a page.
#[derive(Debug)]
pub struct Data {
    /// JSON value that the page draws.
    pub json: String,
    /// Names of the runs.
    pub title: String,
    /// Problems with files that could not be read and are left out.
    pub problems: Vec<String>,
}

impl Gather {
    /// Shows the runs in these folders together.
    pub fn new(dirs: Vec<PathBuf>) -> Self {
        Self(dirs.into_iter().map(Source::new).collect())
    }

    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|source| source.dir.as_path())
    }

    /// Reads the folders again. With `watch`, the page will ask for newer data.
    ///
    /// # Errors
    /// If an existing file cannot be read.
    pub fn data(&mut self, watch: bool) -> Result<Data> {
        let records: Vec<RecordedRun> = self.0.iter().map(|source| RecordedRun::read(&source.dir)).collect();
        for (source, record) in self.0.iter_mut().zip(&records) {
            source.refresh(record)?;
        }
        let names = names(&records);
        let mut json = format!("{{\"version\":1,\"generated\":{},\"watch\":{watch},\"runs\":[", unix_time());
        let mut room = ROOM;
        let mut problems = Vec::new();
        for (i, ((source, record), name)) in self.0.iter().zip(&records).zip(&names).enumerate() {
            json.push_str(if i > 0 { "," } else { "" });
            // Space that one run does not use is left to the runs after it.
            let share = room / (records.len() - i);
            source.write(record, name, share, &mut json)?;
            room -= source.samples.bytes().min(share);
            problems.extend(record.problems.iter().map(|problem| format!("{name}: {problem}")));
            problems.extend([&source.metrics, &source.samples_file].into_iter().filter_map(damage));
        }
        json.push_str("]}");
        Ok(Data { json, title: names.join(", "), problems })
    }
}

fn damage(tail: &Tail) -> Option<String> {
    let (count, first) = tail.damaged;
    let lines = if count == 1 { "1 line is".to_owned() } else { format!("{count} lines are") };
    (count > 0).then(|| {
        format!(
            "{}: {lines} left out, because they are not JSON with a step; the first begins at byte {first}",
            tail.path().display()
        )
    })
}

/// Returns names that distinguish the runs.
fn names(records: &[RecordedRun]) -> Vec<String> {
    let short: Vec<String> = records.iter().map(RecordedRun::name).collect();
    let is_alone = |name: &String| short.iter().filter(|other| *other == name).count() == 1;
    let full = |(name, record): (&String, &RecordedRun)| {
        if is_alone(name) { name.clone() } else { format!("{name} ({})", record.dir.display()) }
    };
    short.iter().zip(records).map(full).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;

    use super::*;
    use burnish_run::{BestSoFar, RecordedSetting, RunInfo, RunState};

    fn data(gather: &mut Gather) -> (Value, Data) {
        let data = gather.data(false).unwrap();
        (serde_json::from_str(&data.json).unwrap(), data)
    }

    #[test]
    fn all_that_a_folder_says_is_in_the_data() {
        let dir = tempfile::tempdir().unwrap();
        let info = RunInfo {
            state: RunState::Failed,
            error: Some("</script>".into()),
            phase: Some("update_actor".into()),
            step: 2,
            total_steps: 8,
            best: Some(BestSoFar { metric: "acc".into(), value: 0.5, step: 1 }),
            config: vec![RecordedSetting { key: "data.seed".into(), value: json!(7), from: "x.yaml:3".into() }],
            command: vec!["trainer".into(), "a=b c".into()],
            ..RunInfo::new("sft", "p", "e")
        };
        info.write(dir.path()).unwrap();
        let metrics =
            "{\"step\":1,\"data\":{\"train/loss\":0.123456789}}\nnonsense\n{\"step\":2,\"data\":{\"train/loss\":\"NaN\"}}\n{\"st";
        fs::write(dir.path().join("metrics.jsonl"), metrics).unwrap();
        let sample = json!({"step": 1, "kind": "val", "response": "</script>\n\u{2028}", "score": null});
        fs::write(dir.path().join(SAMPLES), format!("{sample}\n")).unwrap();

        let (value, made) = data(&mut Gather::new(vec![dir.path().to_owned()]));
        let run = &value["runs"][0];
        assert_eq!(run["metrics"], json!({"steps": [1, 2], "series": {"train/loss": [0.123457, "NaN"]}}));
        assert_eq!((&run["samples"], &run["omitted"]), (&json!([sample]), &json!(0)));
        let expected = json!({"name": "e", "state": "failed", "resumable": false, "error": "</script>", "phase": "update_actor",
            "step": 2, "total_steps": 8, "command": "trainer 'a=b c'", "best": {"metric": "acc", "value": 0.5, "step": 1},
            "config": [{"key": "data.seed", "value": 7, "from": "x.yaml:3"}], "id": info.id, "kind": "sft", "device": null});
        for (key, expected) in expected.as_object().unwrap() {
            assert_eq!(&run[key], expected, "{key}");
        }
        assert_eq!((&value["version"], &value["watch"], &made.title[..]), (&json!(1), &json!(false), "e"));
        assert!(
            made.problems.len() == 1 && made.problems[0].contains("metrics.jsonl: 1 line is left out"),
            "{:?}",
            made.problems
        );
    }

    #[test]
    fn runs_called_the_same_are_told_apart_and_read_on() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = ["a/run", "b/run", "c"].map(|name| dir.path().join(name));
        for (i, dir) in dirs.iter().enumerate() {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join("metrics.jsonl"), format!("{{\"step\":{i},\"data\":{{\"a\":1}}}}\n")).unwrap();
        }
        let mut gather = Gather::new(dirs.to_vec());
        let (value, made) = data(&mut gather);
        assert_eq!(made.title, format!("run ({}), run ({}), c", dirs[0].display(), dirs[1].display()));
        assert_eq!(value["runs"][2]["metrics"]["steps"], json!([2]));
        fs::write(dirs[2].join("metrics.jsonl"), "{\"step\":2,\"data\":{\"a\":1}}\n{\"step\":3,\"data\":{\"b\":2}}\n").unwrap();
        let series = json!({"steps": [2, 3], "series": {"a": [1, null], "b": [null, 2]}});
        assert_eq!(data(&mut gather).0["runs"][2]["metrics"], series);
    }
}
