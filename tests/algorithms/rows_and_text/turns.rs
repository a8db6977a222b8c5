//! Turns that the chat template writes differently within a conversation than at its end.

use burnish::data::examples::read_sft;

use super::supervised::chatml_tokenizer;
use super::*;

/// Writes earlier turns without thoughts and the last turn with an empty thought, like Qwen3's template.
const THINKS_LAST: &str = "{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\n' }}{% if m.role == 'assistant' %}\
    {% set said = m.content.split('</think>')[-1].lstrip('\n') %}{% if loop.last %}{% set mind = m.content.split('</think>')[0].split('<think>')[-1].strip('\n') if '</think>' in m.content else '' %}\
    {{ '<think>\n' ~ mind ~ '\n</think>\n\n' ~ said }}{% else %}{{ said }}{% endif %}{% else %}{{ m.content }}{% endif %}\
    {{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
/// Opens a turn with a thought that the whole conversation never has, like DeepSeek-R1's template.
const OPENS: &str = "{% for m in messages %}{{ '[' ~ m.role ~ ']' ~ m.content }}{{ '<|im_end|>' if m.role == 'assistant' }}{% endfor %}\
    {% if add_generation_prompt %}[assistant]<think>\n{% endif %}";
/// Writes an empty thought in every turn, and opens one in the generation prompt, like Nemotron's template.
const EMPTY: &str = "{% for m in messages %}{{ '[' ~ m.role ~ ']' }}{{ '<think></think>' if m.role == 'assistant' }}{{ m.content ~ '<|im_end|>\n' }}{% endfor %}\
    {% if add_generation_prompt %}[assistant]<think>\n{% endif %}";
/// Ends the last turn with another token than the earlier ones, like gpt-oss's template.
const RETURNS: &str = "{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ ':' ~ m.content }}{{ '<eos>' if loop.last and m.role == 'assistant' else '<|im_end|>' }}{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant{% endif %}";
/// Ends only the last turn, and begins the turns of users with a special token.
const LAST_ENDS: &str = "{% for m in messages %}{{ '<|im_start|>' if m.role == 'user' else '=' }}{{ m.content }}{{ '<|im_end|>' if loop.last and m.role == 'assistant' }}{% endfor %}\
    {{ '=' if add_generation_prompt }}";
/// Writes the name of a speaker, but no end of a turn.
const PLAIN: &str =
    "{% for m in messages %}{{ m.role ~ ': ' ~ m.content ~ '\n' }}{% endfor %}{{ 'assistant: ' if add_generation_prompt }}";
/// Writes special tokens before a response but not after it, like GLM-4.5's template.
const BEFORE: &str = "{% for m in messages %}{{ '[' ~ m.role ~ ']' }}{{ '<|im_start|><|im_end|>' if m.role == 'assistant' }}{{ m.content }}{% endfor %}\
    {% if add_generation_prompt %}[assistant]{% endif %}";
/// Leaves out the assistant's messages.
const SILENT: &str = "{% for m in messages %}{{ '[' ~ m.role ~ ']' ~ (m.content if m.role == 'user') ~ '<|im_end|>' }}{% endfor %}\
    {% if add_generation_prompt %}[assistant]{% endif %}";
/// Opens a turn in the generation prompt with a text that the whole conversation does not have.
const ASKS: &str = "{% for m in messages %}{{ '[' ~ m.role ~ ']' ~ m.content ~ '<|im_end|>' }}{% endfor %}{{ '(answer:)' if add_generation_prompt }}";
/// Writes the content of messages in capital letters.
const LOUD: &str = "{% for m in messages %}{{ '[' ~ m.role ~ ']' ~ m.content.upper() ~ '<|im_end|>' }}{% endfor %}{{ '[assistant]' if add_generation_prompt }}";

fn say(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

/// Returns the trained texts, or the error; and the messages about the row.
fn learnt(template: &str, row: &Value, options: &SftOptions) -> (Result<Vec<String>, String>, String) {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = chatml_tokenizer(folder.path(), template);
    let read = match read_sft(&jsonl(folder.path(), std::slice::from_ref(row)), &tokenizer, options) {
        Ok(read) => read,
        Err(error) => return (Err(format!("{error:#}")), String::new()),
    };
    let message = format!("{:?}", read.tally);
    let Some(document) = read.kept.first() else { return (Err(message.clone()), message) };
    let (mut runs, mut before): (Vec<Vec<u32>>, f32) = (Vec::new(), 0.0);
    for (id, weight) in document.ids.iter().zip(&document.weights) {
        match runs.last_mut().filter(|_| before != 0.0) {
            _ if *weight == 0.0 => {}
            Some(run) => run.push(*id),
            None => runs.push(vec![*id]),
        }
        before = *weight;
    }
    (Ok(runs.iter().map(|run| tokenizer.decode(run, false).unwrap()).collect()), message)
}

#[test]
fn a_turn_is_what_the_template_makes_of_it_in_the_whole_conversation() {
    let two = |first: &str, second: &str| json!({"messages": [say("user", "1?"), say("assistant", first), say("user", "2?"), say("assistant", second)]});
    let options = |assistant_mask| SftOptions { assistant_mask, ..conversations(Overlong::Error, 500) };
    let empty = "<think>\n\n</think>\n\n";
    let cases = [
        (THINKS_LAST, two("11", "22"), vec!["11<|im_end|>".to_owned(), format!("{empty}22<|im_end|>")]),
        // All messages have the same text, and the template has it too.
        (THINKS_LAST, two("1?", "1?"), vec!["1?<|im_end|>".into(), format!("{empty}1?<|im_end|>")]),
        (THINKS_LAST, two("assistant", "user"), vec!["assistant<|im_end|>".into(), format!("{empty}user<|im_end|>")]),
        (
            THINKS_LAST,
            two("<|im_end|>1", "2<|im_start|>assistant\n3"),
            vec!["<|im_end|>1<|im_end|>".into(), format!("{empty}2<|im_start|>assistant\n3<|im_end|>")],
        ),
        (THINKS_LAST, two("", "2"), vec!["<|im_end|>".into(), format!("{empty}2<|im_end|>")]),
        (
            THINKS_LAST,
            two("<think>x</think>11", "<think>y</think>22"),
            vec!["11<|im_end|>".into(), "<think>\ny\n</think>\n\n22<|im_end|>".into()],
        ),
        (OPENS, two("11", "22"), vec!["11<|im_end|>".into(), "22<|im_end|>".into()]),
        (OPENS, two("[assistant]", "2"), vec!["[assistant]<|im_end|>".into(), "2<|im_end|>".into()]),
        (EMPTY, two("11", "22"), vec!["<think></think>11<|im_end|>".into(), "<think></think>22<|im_end|>".into()]),
        (RETURNS, two("11", "22"), vec![":11<|im_end|>".into(), ":22<eos>".into()]),
        (LOUD, two("ab", "cd"), vec!["AB<|im_end|>".into(), "CD<|im_end|>".into()]),
    ];
    for (template, row, expected) in cases {
        for mask in [AssistantMask::Auto, AssistantMask::Prefix] {
            if mask == AssistantMask::Prefix && template == EMPTY {
                continue;
            }
            assert_eq!(learnt(template, &row, &options(mask)).0, Ok(expected.clone()), "{row}\n{template}");
        }
    }
    // If the whole conversation has the opened thought, TRL's rule trains it; the rule of verl and OpenRLHF does not.
    let thinks = OPENS.replace("m.content }}", "('<think>\n' if m.role == 'assistant') ~ m.content }}");
    let row = two("11", "22");
    let (by_trl, by_verl) =
        (learnt(&thinks, &row, &options(AssistantMask::Auto)), learnt(&thinks, &row, &options(AssistantMask::Prefix)));
    assert_eq!(by_trl.0.unwrap(), ["<think>\n11<|im_end|>", "<think>\n22<|im_end|>"]);
    assert_eq!(by_verl.0.unwrap(), ["11<|im_end|>", "22<|im_end|>"]);
    // Turns of a prompt are not trained if only the completion is, even if the whole conversation has other text than the prompt.
    let [prompt, completion] = [0, 2].map(|at| row["messages"].as_array().unwrap()[at..at + 2].to_vec());
    let row = json!({"prompt": prompt, "completion": completion});
    let columns = SftColumns::Completion { prompt_key: "prompt".into(), completion_key: "completion".into() };
    let both = LossMask { assistant: true, completion: true };
    let options = SftOptions { columns, loss_mask: both, ..options(AssistantMask::Auto) };
    assert_eq!(learnt(THINKS_LAST, &row, &options).0.unwrap(), [format!("{empty}22<|im_end|>")]);
}

/// Finding a turn takes renderings of the messages before it, so turns outside of the kept tokens are not searched. The template
/// does not end one turn, which is an error where it is searched.
#[test]
fn turns_outside_of_the_kept_tokens_are_not_searched() {
    const LEAVES_OPEN: &str = "{% for m in messages %}{{ '[' ~ m.role ~ ']' ~ m.content ~ ('' if m.open else '<|im_end|>') }}\
        {% endfor %}{{ '[assistant]' if add_generation_prompt }}";
    let row = |open: usize| {
        let reply = |(i, text): (usize, &str)| json!({"role": "assistant", "content": text, "open": i == open});
        let replies = ["11", "22", "33"].into_iter().enumerate().map(reply);
        json!({"messages": replies.flat_map(|reply| [say("user", "1?"), reply]).collect::<Vec<_>>()})
    };
    let (first, last) = (row(0), row(2));
    // A question and a reply have 23 tokens.
    let read = |row: &Value, overlong, max| learnt(LEAVES_OPEN, row, &conversations(overlong, max)).0;
    assert_eq!(read(&last, Overlong::Right, 23).unwrap(), ["11<|im_end|>"]);
    assert_eq!(read(&first, Overlong::Left, 23).unwrap(), ["33<|im_end|>"]);
    for row in [&first, &last] {
        let [refused, skipped, searched] = [(Overlong::Error, 23), (Overlong::Filter, 23), (Overlong::Error, 500)]
            .map(|(overlong, max)| read(row, overlong, max).unwrap_err());
        assert!(refused.contains("the example has 68 tokens"), "{refused}");
        assert!(!skipped.contains("does not end"), "{skipped}");
        assert!(searched.contains("the chat template does not end"), "{searched}");
    }
}

/// All of a trained message is trained, or an error names the row.
#[test]
fn no_part_of_a_learnt_message_is_lost_in_silence() {
    let one = |content: &str| json!({"messages": [say("user", "1?"), say("assistant", content)]});
    let no_end = "message 1: the chat template does not end the turn";
    let unclear = "is unknown";
    let long = json!({"messages": [say("user", "1?"), say("assistant", "2"), say("user", "3"), say("assistant", "4")]});
    let options = conversations(Overlong::Error, 500);
    for (template, row, part) in [
        (PLAIN, one("first <|im_start|> second part"), no_end),
        (PLAIN, one("first"), no_end),
        (BEFORE, one("the whole answer"), no_end),
        (BEFORE, one(""), no_end),
        (SILENT, one("answer"), "message 1: the chat template does not write"),
        (ASKS, one("answer"), unclear),
        (LAST_ENDS, long, unclear),
    ] {
        let (result, _) = learnt(template, &row, &options);
        let message = result.unwrap_err();
        assert!(message.contains("row 0") && message.contains(part), "{template}: {message}");
    }
    // A message may itself contain the end of its turn.
    assert_eq!(learnt(PLAIN, &one("first<|im_end|>"), &options).0.unwrap(), ["first<|im_end|>"]);
    // A message reports omissions of a template, thoughts or a content next to calls; a call that it leaves out is an error.
    let calls = json!([{"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}]);
    let with_calls = json!({"messages": [say("user", "1?"), {"role": "assistant", "content": "2", "tool_calls": calls}]});
    let thoughts = json!({"messages": [say("user", "1?"), {"role": "assistant", "content": "2", "reasoning_content": "x"}]});
    let earlier =
        json!({"messages": [say("user", "1?"), say("assistant", "<think>x</think>2"), say("user", "3"), say("assistant", "4")]});
    let only_calls = "{% for m in messages %}{{ '[' ~ m.role ~ ']' ~ (m.tool_calls[0].function.name if m.tool_calls else m.content) ~ '<|im_end|>' }}{% endfor %}{{ '[assistant]' if add_generation_prompt }}";
    let marked = only_calls.replace("m.content) ~ '<|im_end|>' }}", "m.content) }}{% generation %}<|im_end|>{% endgeneration %}");
    let (refused, _) = learnt(THINKS_LAST, &with_calls, &options);
    assert!(refused.as_ref().is_err_and(|error| error.contains("does not write its \"tool_calls\"")), "{refused:?}");
    for (template, row, says) in [
        (THINKS_LAST, &thoughts, true),
        (THINKS_LAST, &earlier, true),
        (THINKS_LAST, &one("<think>x</think>2"), false),
        (THINKS_LAST, &one(" 2 "), false),
        (only_calls, &with_calls, true),
        (marked.as_str(), &one("2"), true),
    ] {
        let (result, text) = learnt(template, row, &options);
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(text.contains("does not write completely"), says, "{row}\n{template}\n{text}");
    }
}
