//! Rows in the tokens of a student and of a teacher with another tokenizer.

use burnish::data::examples::{AnswerTokens, TwoTexts, read_two_texts};

use super::*;

/// Writes a tokenizer whose vocabulary is `texts` after three special tokens, cut by `pattern`.
fn tokenizer(folder: &Path, name: &str, pattern: &str, texts: &[&str], template: &str) -> Tokenizer {
    let folder = folder.join(name);
    fs::create_dir(&folder).unwrap();
    let texts = [&["<unk>", "<end>", "<turn>"], texts].concat();
    let vocab: serde_json::Map<_, _> = texts.iter().enumerate().map(|(id, text)| ((*text).to_owned(), json!(id))).collect();
    let special = |id: usize| json!({"id": id, "content": texts[id], "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": [special(1), special(2)],
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"},
    });
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let config = json!({"eos_token": "<end>", "unk_token": "<unk>", "chat_template": template});
    fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
    Tokenizer::load(&folder).unwrap()
}

const STUDENT: &str =
    "{% for m in messages %}{{ m.role[0] }}{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}a{% endif %}";
/// Writes other marks, and spaces around answers.
const TEACHER: &str = "{% for m in messages %}<turn>{{ m.role[0] }} {{ m.content }} <end>{% endfor %}{% if add_generation_prompt %}<turn>a{% endif %}";

fn both(folder: &Path, teacher: &str) -> [Tokenizer; 2] {
    let letters = ["a", "u", "x", "y", "z", " "];
    let pairs = ["a", "u", "x", "yz", "z", " ", "T"];
    [tokenizer(folder, "student", r"[\s\S]", &letters, STUDENT), tokenizer(folder, "teacher", r"yz|[\s\S]", &pairs, teacher)]
}

fn row(answer: &str) -> serde_json::Value {
    json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": answer}]})
}

fn tokens(tokens: std::ops::Range<usize>, ends: &[usize], after: usize) -> AnswerTokens {
    AnswerTokens { tokens, ends: ends.iter().map(|end| Some(*end)).collect(), after }
}

#[test]
fn both_models_read_their_own_template_and_the_same_answer() {
    let folder = tempfile::tempdir().unwrap();
    let [student, teacher] = both(folder.path(), TEACHER);
    let files = jsonl(folder.path(), &[row("xyz"), row("zx")]);
    let read = |options: &SftOptions| read_two_texts(&files, &student, &teacher, options).unwrap();
    let kept = read(&conversations(Overlong::Error, 32)).kept;
    let TwoTexts { student: own, teacher: other, answers, cut_before } = &kept[0];
    assert_eq!(student.decode(&own.ids, false).unwrap(), "ux<end>axyz<end>");
    assert_eq!(teacher.decode(&other.ids, false).unwrap(), "<turn>u x <end><turn>a xyz <end>");
    // The student's end token is after the text; the teacher has a space before it too.
    assert_eq!(*answers, [[tokens(4..7, &[1, 2, 3], 1), tokens(9..11, &[1, 3], 2)]]);
    assert_eq!(*cut_before, 0);
    // Only the student's row is cut. Positions are those before the cut.
    let cut = read(&conversations(Overlong::Left, 5)).kept;
    assert_eq!((cut[0].student.ids.len(), cut[0].cut_before, cut[0].teacher.ids.len()), (5, 3, 13));
    assert_eq!(cut[0].answers, *answers);
}

#[test]
fn rows_with_other_answers_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    // This teacher begins each answer with a thought, and changes one.
    let thinks =
        TEACHER.replace("{{ m.content }}", "{% if m.role == 'assistant' %}TT {% endif %}{{ m.content | replace('zz', 'x') }}");
    let [student, teacher] = both(folder.path(), &thinks);
    let files = jsonl(folder.path(), &[row("xyz"), row("zx"), row("azz")]);
    let read = read_two_texts(&files, &student, &teacher, &conversations(Overlong::Error, 32)).unwrap();
    assert_eq!(read.kept.len(), 2, "{:?}", read.tally);
    assert!(read.tally.describe().unwrap().contains("writes as another text"), "{:?}", read.tally);
    // The thought is before the shared text.
    let TwoTexts { teacher: other, answers, .. } = &read.kept[0];
    let [_, AnswerTokens { tokens, ends, .. }] = &answers[0];
    assert_eq!(teacher.decode(&other.ids[tokens.clone()], false).unwrap(), "xyz");
    assert_eq!(*ends, [Some(1), Some(3)]);
}

/// Plain texts are one answer with the end-of-text token behind.
#[test]
fn a_text_is_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let [student, teacher] = both(folder.path(), TEACHER);
    let columns = SftColumns::Text { text_key: "text".into() };
    let text = SftOptions { columns, loss_mask: LossMask::ALL, ..conversations(Overlong::Error, 32) };
    let files = jsonl(folder.path(), &[json!({"text": "xyz"})]);
    let read = read_two_texts(&files, &student, &teacher, &text).unwrap();
    assert_eq!(read.kept[0].answers, [[tokens(0..3, &[1, 2, 3], 1), tokens(0..2, &[1, 3], 1)]]);
}
