"""One rule, written for each of the frameworks whose reward functions run unchanged."""


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return float(solution_str.strip() == ground_truth)


def positional(task, completion, reference, info=None):
    return completion.strip() == reference


async def with_parts(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    correct = float(solution_str.strip() == ground_truth)
    return {"score": correct, "acc": correct, "pred": solution_str.strip()}


def batch(data_sources, solution_strs, ground_truths, extra_infos):
    return [float(text.strip() == truth) for text, truth in zip(solution_strs, ground_truths)]


def trl(completions, reward_model, **kwargs):
    texts = [completion[0]["content"] for completion in completions]
    return [float(text.strip() == row["ground_truth"]) for text, row in zip(texts, reward_model)]


def reward_func(queries, prompts, labels):
    answers = [query[len(prompt):].replace("<eos>", "") for query, prompt in zip(queries, prompts)]
    return {"rewards": [float(answer.strip() == label) for answer, label in zip(answers, labels)]}


def by_column(completions, solution):
    return [None if truth is None else float(text.strip() == truth) for text, truth in zip(completions, solution)]
