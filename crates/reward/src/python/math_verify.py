# Calls of math-verify, which run in a worker. Its time limits are alarms of the main thread, which runs this code; math-verify
# does not
# report when they expire.

import logging

from latex2sympy2_extended import NormalizationConfig
from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
from math_verify.errors import TimeoutException

logging.getLogger("math_verify").setLevel(logging.CRITICAL)


def verl(response, truth):
    """Scores like verl's math_verify scorer: an answer in the response equals one in the ground truth; a timeout counts as wrong."""
    try:
        gold = parse("\\boxed{" + truth + "}", (LatexExtractionConfig(),))
        found = parse(response, (ExprExtractionConfig(), LatexExtractionConfig()))
        return {"score": float(any(verify(g, f) for f in found for g in gold))}
    except TimeoutException:
        return {"score": 0.0}


def trl(response, truth):
    """Scores like TRL's accuracy_reward: LaTeX only, boxed answers first; no score if the ground truth cannot be parsed."""
    gold = parse(truth, parsing_timeout=10)
    if not gold:
        return {"score": None, "gold": "[unparseable]", "answer": "[skipped]"}
    normalization = NormalizationConfig(units=True)
    latex = LatexExtractionConfig(normalization_config=normalization, boxed_match_priority=0, try_extract_without_anchor=False)
    found = parse(response, extraction_config=[latex], extraction_mode="first_match", parsing_timeout=10)
    score = float(verify(gold, found, timeout_seconds=5))
    return {"score": score, "gold": str(gold), "answer": str(found) if found else "[unparseable]"}


def same(response, truth):
    """Compares two bare answers; `response` is the answer that was extracted from a response."""
    def read(text):
        return parse("\\boxed{" + text + "}", (LatexExtractionConfig(), ExprExtractionConfig()))

    try:
        return {"score": float(verify(read(truth), read(response)))}
    except TimeoutException:
        return {"score": 0.0}
