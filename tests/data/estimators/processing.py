"""Post-processing of scores: the same as some settings, and what they have not."""


def less_one(scores):
    return scores - 1


def post_process(scores, responses, ground_truths, index, lengths, extras, step, config, **more):
    """Leaves out every response but the right ones and the first of each prompt, whose score is 3 more."""
    assert set(more) == {"response_mask", "prompts", "data_sources"} and more["response_mask"].sum() == lengths.sum()
    assert step >= 1 and config.gamma == 1.0 and len(extras["acc"]) == len(scores)
    first = [i == 0 or index[i] != index[i - 1] for i in range(len(index))]
    right = [response.strip() == truth for response, truth in zip(responses, ground_truths)]
    for i, is_first in enumerate(first):
        scores[i] += 3 * is_first
    return {"scores": scores, "keep": [a or b for a, b in zip(first, right)]}


def nothing(scores):
    return None


def too_few(scores):
    return {"scores": scores[:3]}
