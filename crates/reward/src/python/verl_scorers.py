# Scorers that files written for verl import (`verl.utils.reward_score`), for when verl itself is not installed. The trainer's own
# scorers, which agree with verl's, do the work: `ask` sends them a question during a call.

import fcntl
import re
import tempfile

SCORES = "verl.utils.reward_score"
PROGRAMS = "it runs programs, and they run in a Sandbox Fusion service alone: set reward.sandbox_fusion.url and name sandbox_fusion in " \
    "reward_model.reward_functions"


class Trainer:
    """The connection to the trainer. Threads and forked processes of the user's code ask in turn."""

    def __init__(self, requests, replies):
        self.requests, self.replies = requests, replies
        self.turn, self.turns = threading.Lock(), tempfile.TemporaryFile()

    def ask(self, question, *arguments):
        with self.turn:
            fcntl.lockf(self.turns, fcntl.LOCK_EX)
            try:
                send(self.replies, {"ask": question, "arguments": [note(argument) for argument in arguments]})
                line = b""
                while not line.endswith(b"\n"):
                    part = os.read(self.requests, MEGABYTE)
                    if not part:
                        end_all()
                    line += part
            finally:
                fcntl.lockf(self.turns, fcntl.LOCK_UN)
        reply = json.loads(line)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply["value"]


TRAINER = None


def ask(question, *arguments):
    return TRAINER.ask(question, *arguments)


def box_at(text, start):
    """Returns the text from `start` to the brace that closes its first open one; `None` if none does."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if text[at] == "}" and depth == 0:
            return text[start: at + 1]
    return None


def unboxed(text, left="\\boxed{"):
    assert text.startswith(left) and text.endswith("}"), "box error: %s" % text
    return text[len(left): -1]


class Gsm8k:
    @staticmethod
    def extract_solution(solution_str, method="strict"):
        assert method in ("strict", "flexible")
        return ask("gsm8k_answer", solution_str, method)

    @staticmethod
    def compute_score(solution_str, ground_truth, method="strict", format_score=0.0, score=1.0):
        answer = Gsm8k.extract_solution(solution_str, method)
        return 0 if answer is None else score if answer == ground_truth else format_score


class MathReward:
    @staticmethod
    def last_boxed_only_string(string):
        if "\\boxed " in string:
            return "\\boxed " + string.split("\\boxed ")[-1].split("$")[0]
        start = string.rfind("\\boxed")
        start = string.rfind("\\fbox") if start < 0 else start
        return None if start < 0 else box_at(string, start)

    @staticmethod
    def remove_boxed(s):
        left = "\\boxed "
        if left not in s:
            return unboxed(s)
        assert s.startswith(left)
        return s[len(left):]

    @staticmethod
    def strip_string(string):
        normal = ask("math_normal_form", string)
        if normal is None:
            raise ValueError("%r has no normal form" % string)
        return normal

    @staticmethod
    def is_equiv(str1, str2, verbose=False):
        if str1 is None or str2 is None:
            return str1 is str2
        try:
            return MathReward.strip_string(str1) == MathReward.strip_string(str2)
        except (RuntimeError, ValueError):
            return str1 == str2

    @staticmethod
    def compute_score(solution_str, ground_truth):
        box = MathReward.last_boxed_only_string(solution_str)
        try:
            return float(box is not None and MathReward.is_equiv(MathReward.remove_boxed(box), ground_truth))
        except AssertionError:
            return 0.0


class MathBatch:
    @staticmethod
    def compute_score_batched(data_sources, solution_strs, ground_truths, extra_infos):
        return [MathReward.compute_score(solution, truth) for solution, truth in zip(solution_strs, ground_truths)]


class MathDapo:
    @staticmethod
    def last_boxed_only_string(string):
        start = string.rfind("\\boxed{")
        return None if start < 0 else box_at(string, start)

    @staticmethod
    def remove_boxed(s):
        return unboxed(s)

    @staticmethod
    def normalize_final_answer(final_answer):
        return ask("dapo_normal_form", final_answer)

    @staticmethod
    def is_correct_minerva(solution_str, gt, gt_need_extract=False, answer_pattern=r"(?i)Answer\s*:\s*([^\n]+)"):
        found = re.findall(answer_pattern, solution_str)
        pred = MathDapo.normalize_final_answer(found[-1] if found else "[INVALID]")
        gt = unboxed(MathDapo.last_boxed_only_string(gt)) if gt_need_extract else gt
        return pred == MathDapo.normalize_final_answer(gt), pred

    @staticmethod
    def is_correct_strict_box(pred, gt, pause_tokens_index=None):
        assert pause_tokens_index is None or len(pause_tokens_index) == 4
        box = MathDapo.last_boxed_only_string(pred[-100 if pause_tokens_index is None else pause_tokens_index[-1] - 100:])
        found = None if box is None else unboxed(box)
        return 1 if found == gt else -1, found

    @staticmethod
    def verify(solution_str, answer, strict_box_verify=False, pause_tokens_index=None):
        by_line = (False, "[INVALID]") if strict_box_verify else MathDapo.is_correct_minerva(solution_str, answer)
        if by_line[1] != "[INVALID]":
            return by_line
        correct, found = MathDapo.is_correct_strict_box(solution_str, answer, pause_tokens_index)
        return (correct == 1, found) if strict_box_verify or found is not None else by_line

    @staticmethod
    def compute_score(solution_str, ground_truth, strict_box_verify=False, pause_tokens_index=None):
        correct, found = MathDapo.verify(solution_str[-300:], ground_truth, strict_box_verify, pause_tokens_index)
        return {"score": 1.0 if correct else -1.0, "acc": correct, "pred": found}


class MathVerify:
    @staticmethod
    def compute_score(model_output, ground_truth, timeout_score=0, timeout=30.0):
        return ask("verified", model_output, ground_truth)


class PrimeMath:
    @staticmethod
    def match_answer(response):
        return ask("prime_answer", response)

    @staticmethod
    def grade_answer(given_answer, ground_truth):
        return given_answer is not None and ask("prime_grade", given_answer, ground_truth)

    @staticmethod
    def compute_score(model_output, ground_truth):
        output, truth = str(model_output), str(ground_truth)
        found = PrimeMath.match_answer(output)[1]
        if PrimeMath.grade_answer(found, truth):
            return True, True, found
        return ask("prime_equal", found, truth), "Step 2:" in output and "\\box" in output, found


class Geo3k:
    @staticmethod
    def format_reward(predict_str):
        return float(re.fullmatch(r"<think>.*</think>.*\\boxed\{.*\}.*", predict_str, re.DOTALL) is not None)

    @staticmethod
    def acc_reward(predict_str, ground_truth, use_boxed=True):
        return float(ask("geo3k_right", ask("geo3k_answer", predict_str) if use_boxed else predict_str, ground_truth))

    @staticmethod
    def compute_score(predict_str, ground_truth, use_boxed=True, format_score=0.1):
        right = Geo3k.acc_reward(predict_str, ground_truth, use_boxed)
        return (1.0 - format_score) * right + format_score * Geo3k.format_reward(predict_str)


class SearchR1:
    @staticmethod
    def normalize_answer(s):
        return ask("search_normal_form", s)

    @staticmethod
    def targets(golden_answers):
        return [ask("search_normal_form", answer) for answer in ([golden_answers] if isinstance(golden_answers, str) else golden_answers)]

    @staticmethod
    def em_check(prediction, golden_answers):
        return int(SearchR1.normalize_answer(prediction) in SearchR1.targets(golden_answers))

    @staticmethod
    def subem_check(prediction, golden_answers):
        prediction = SearchR1.normalize_answer(prediction)
        return int(any(target in prediction for target in SearchR1.targets(golden_answers)))

    @staticmethod
    def extract_solution(solution_str):
        found = re.findall(r"<answer>(.*?)</answer>", solution_str, re.DOTALL)
        return found[-1].strip() if found else None

    @staticmethod
    def count_answer_tags(text):
        return text.count("<answer>"), text.count("</answer>")

    @staticmethod
    def compute_score(solution_str, ground_truth, method="strict", format_score=0.0, score=1.0):
        answer = SearchR1.extract_solution(solution_str)
        if answer is None:
            return 0
        if not SearchR1.em_check(answer, ground_truth["target"]):
            return format_score
        return score / 4 if max(SearchR1.count_answer_tags(solution_str)) > 10 else score

    @staticmethod
    def compute_score_subem(solution_str, ground_truth, method="strict", format_score=0.0, score=1.0):
        answer = SearchR1.extract_solution(solution_str)
        return 0 if answer is None else score if SearchR1.subem_check(answer, ground_truth["target"]) else format_score


class Programs:
    @staticmethod
    def compute_score(*arguments, **named):
        raise NotImplementedError("%s scores programs, and verl is not installed for %s: %s" % (SCORES, sys.executable, PROGRAMS))


# The modules of verl, also by the names of earlier editions.
MODULES = {
    "gsm8k": Gsm8k, "math_reward": MathReward, "math": MathReward, "math_batch": MathBatch, "math_dapo": MathDapo, "math_verify": MathVerify,
    "prime_math": PrimeMath, "geo3k": Geo3k, "search_r1_like_qa_em": SearchR1, "prime_code": Programs, "sandbox_fusion": Programs,
}
# The trainer's names of scorers whose modules have other names.
RENAMED = {"search_r1": "search_r1_like_qa_em"}


def default_compute_score(
    data_source, solution_str, ground_truth, extra_info=None, sandbox_fusion_url=None, concurrent_semaphore=None, memory_limit_mb=None, **kwargs
):
    name = ask("scorer", data_source)
    module = MODULES.get(RENAMED.get(name, name))
    if name is None:
        raise NotImplementedError("Reward function is not implemented for data_source=%r" % data_source)
    if module is None:
        return ask("score", data_source, solution_str, ground_truth)
    result = module.compute_score(solution_str, ground_truth)
    return result if isinstance(result, dict) else float(result[0] if isinstance(result, tuple) else result)


def get_default_compute_score(reward_name=None):
    return default_compute_score


def provide_scorers():
    """Provides verl's package of scorers."""
    by_data_source = dict(
        default_compute_score=default_compute_score,
        _default_compute_score=default_compute_score,
        get_default_compute_score=get_default_compute_score,
    )
    provide(SCORES, **by_data_source)
    for name, functions in MODULES.items():
        own = {key: value.__func__ for key, value in vars(functions).items() if isinstance(value, staticmethod)}
        provide("%s.%s" % (SCORES, name), **own)
