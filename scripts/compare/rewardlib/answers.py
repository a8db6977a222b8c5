"""Generators of (response, ground truth) for differential_rewards.py."""

# Pieces that scorers treat specially, put at random places.
LATEX = (
    "\\frac \\dfrac \\tfrac \\frac12 \\frac1{2} \\frac{1}2 \\sqrt \\sqrt2 \\sqrt{ \\text{ \\text{m} \\text{s} \\text{and} \\mbox{ \\textbf{ "
    "\\overline{ \\boxed \\boxed{ \\boxed{{ \\fbox{ \\left \\right ^\\circ ^{\\circ} \\% \\\\% % \\$ $ .$ \\! \\\\ \\; ,\\! {,} \\ldots \\dots "
    "\\mathrm{th} \\pi \\cdot \\infty \\pm \\le = / , . .5 0.5 { } ( ) [ ] ^ _ - + * : \" square units cm degrees a an the"
).split(" ") + ["\\boxed ", "\\text{ m}", "\\ ", " ", "  ", "\n", "\t", " .", "{.", "an ", "a ", "k=", "xy=", "Answer: ", "answer : ", "\n\n"]
UNICODE = list("éßİıſKσςΣ²③٣４½Ⅷ五日𝟙\u00a0\u2003\u3000\u1680\u0085\u2028\x1c\x1d\x1f\x0b\x0c\x00\u200b\ufeff\u0301\u0ca0🙂−–’“。，：＝")
TAGS = ["<answer>", "</answer>", "<think>", "</think>", "<answer", "answer>", "</answer", "####", "#### ", "### "]


def integer(rng):
    return str(rng.choice([rng.randint(-9, 12), rng.randint(-100, 1000), rng.randint(0, 10**7), 10 ** rng.randint(0, 22)]))


def decimal(rng):
    return f"{rng.choice(['', '-'])}{rng.choice(['', '0', '3', '12', '007'])}.{rng.choice(['5', '0', '25', '50', '333', '', '1000'])}"


def mathematical(rng):
    """An answer in textbook notation."""
    a, b, c = (str(rng.randint(1, 19)) for _ in range(3))
    x = rng.choice("xykntaAB")
    return rng.choice([
        lambda: integer(rng),
        lambda: integer(rng),
        lambda: decimal(rng),
        lambda: f"\\frac{{{a}}}{{{b}}}",
        lambda: f"-\\frac{{{a}}}{{{b}}}",
        lambda: f"{a}/{b}",
        lambda: f"{c}\\frac{{{a}}}{{{b}}}",
        lambda: f"{c} {a}/{b}",
        lambda: f"\\sqrt{{{a}}}",
        lambda: f"{b}\\sqrt{{{a}}}",
        lambda: f"\\frac{{{a}\\sqrt{{{b}}}}}{{{c}}}",
        lambda: f"{a}+{b}\\sqrt{{{c}}}",
        lambda: f"{a}\\pi",
        lambda: f"\\frac{{{a}\\pi}}{{{b}}}",
        lambda: f"({a}, {b})",
        lambda: f"[{a},{b})",
        lambda: f"(-\\infty, {a}]\\cup({b},\\infty)",
        lambda: f"({integer(rng)},{decimal(rng)},{mathematical(rng)})",
        lambda: f"{a}, {b}, {c}",
        lambda: f"{a} and {b}",
        lambda: f"{x}={a}",
        lambda: f"{x} = {mathematical(rng)}",
        lambda: f"{a}{x}+{b}",
        lambda: f"{x}^{{{a}}}-{b}{x}",
        lambda: f"{x}^2+{a}",
        lambda: f"{a}^\\circ",
        lambda: f"{a}\\%",
        lambda: f"\\${a}.{b}",
        lambda: f"{a},{rng.randint(0, 999):03},{rng.randint(0, 999):03}",
        lambda: f"{a}\\text{{ cm}}^2",
        lambda: f"{a} {rng.choice(['cm', 'meters', 'square units', 'hours', 'dollars', 'degrees', 'feet', 'inches'])}",
        lambda: f"\\text{{{rng.choice(['yes', 'no', 'Monday', 'odd', 'the cat', 'even and odd'])}}}",
        lambda: f"\\text{{({rng.choice('ABCDE')})}}",
        lambda: f"\\begin{{pmatrix}} {a} & {b} \\\\ {c} & 0 \\end{{pmatrix}}",
        lambda: f"{a}_{{{b}}}",
        lambda: f"{a} \\times 10^{{{b}}}",
        lambda: f"{a} \\cdot {b}",
        lambda: f"{a} \\pm \\sqrt{{{b}}}",
        lambda: f"{a} million",
        lambda: "",
        lambda: rng.choice(["None", "[INVALID]", "NaN", "inf", "1e3", "1_000", "+5", "٤٢", "４２", "0", "-0", "00", "."]),
    ])()


RESPELT = [
    ("\\frac", "\\dfrac"), ("\\frac", "\\tfrac"), ("\\frac", "\\frac "), ("{", "{ "), ("}", " }"), ("(", "\\left("), (")", "\\right)"),
    (",", ", "), (",", ""), (",", "{,}"), (",", ",\\!"), (", ", ","), ("+", " + "), ("-", "- "), (" ", ""), (" ", "\\ "), ("^\\circ", ""),
    ("^\\circ", "^{\\circ}"), ("\\%", "%"), ("\\%", ""), ("\\$", ""), ("\\$", "$"), ("\\text{ cm}^2", ""), ("\\text", "\\mbox"),
    ("\\text", "\\textbf"), ("0.", "."), ("\\cdot", "*"), ("\\pi", "π"), ("and", "or"), ("{1}{2}", "12"), ("\\sqrt{2}", "\\sqrt2"),
]


def respelt(rng, answer):
    """The same, perhaps written in another way."""
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3])):
        answer = answer.replace(*rng.choice(RESPELT))
    return rng.choice([
        *[lambda: answer] * 24, lambda: f"${answer}$", lambda: f" {answer} ", lambda: f"x={answer}",
        lambda: f"{answer}.", lambda: f"{answer}\\%", lambda: f"{answer}^\\circ", lambda: f"\\${answer}", lambda: f"\\text{{{answer}}}",
        lambda: f"{answer}\\text{{ m}}", lambda: f"{answer} units", lambda: f"{answer}.0", lambda: f"{{{answer}}}", lambda: f"({answer})",
        lambda: f"\\boxed{{{answer}}}", lambda: f"\\left({answer}\\right)", lambda: f"\\textbf{{{answer}}}", lambda: f"\\overline{{{answer}}}",
        lambda: answer.upper(), lambda: f"the {answer}", lambda: f"\\mbox{{{answer}}}",
    ])()


def mistakes(rng, text, pieces):
    """The same with inserted pieces, and characters lost, doubled and swapped."""
    for _ in range(rng.choice([0] * 9 + [1, 1, 2, 5])):
        at = rng.randint(0, len(text))
        here, after = text[:at], text[at:]
        text = rng.choice([
            lambda: here + rng.choice(pieces) + after,
            lambda: here + rng.choice(UNICODE) + after,
            lambda: here + after[1:],
            lambda: here + after[:1] + after,
            lambda: here[:-1] + after[:1] + here[-1:] + after[1:],
            lambda: here,
        ])()
    return text


def filler(rng, pieces=LATEX):
    """Text before or after an answer: often empty, sometimes about as long as the range that scorers search."""
    words = ["so", "thus", "we get", "3", "x", "1/2", ".", ",", "the", "and", "é", "五", "\n", *pieces[:8]]
    short = " ".join(rng.choice(words) for _ in range(rng.randint(0, 6)))
    long = rng.choice("x é五\n") * (rng.choice([100, 300]) + rng.randint(-25, 5))
    return rng.choice([lambda: "", lambda: "", lambda: "", lambda: "so ", lambda: short, lambda: rng.choice(pieces), lambda: long])()


BOXED = [*["\\boxed{%s}", "$\\boxed{%s}$."] * 20, "\\boxed{ %s }", "\\boxed %s$", "\\boxed %s", "\\fbox{%s}", "\\boxed{%s", "\\boxed{\\boxed{%s}}", "\\boxed{x = %s}"]
ANSWERED = [
    *["Answer: %s", "Answer: %s\n"] * 12, "answer :\n %s\n", "Answer: $%s$", "Answer: \\boxed{%s}", "ANSWER:%s.", "**Answer:** %s", "The answer is %s",
    "Answer\u00a0:\x1c%s", "anſwer: %s", "%s", "Answer: \\(%s\\)", "Final Answer: $x = %s$. I hope", "<think>%s</think>", "$%s$", "#### %s",
]


def framed(rng, answer, frames=None, pieces=LATEX):
    text = rng.choice(frames or BOXED + ANSWERED).replace("%s", answer)
    return filler(rng, pieces) + text + filler(rng, pieces)


def several(rng, make, one, pieces):
    """Answers in one or more frames, the right one anywhere among them."""
    texts = [make(rng, one)] + [make(rng, mathematical(rng)) for _ in range(rng.choice([0, 0, 0, 0, 1, 2]))]
    if rng.random() < 0.2:
        rng.shuffle(texts)
    else:
        texts.reverse()
    return mistakes(rng, rng.choice(["", " ", "\n"]).join(texts), pieces)


def math(frames):
    """A generator of answers in LaTeX, most of them in one of these frames."""

    def generate(rng):
        truth = mathematical(rng)
        one = respelt(rng, truth) if rng.random() < 0.85 else mathematical(rng)
        if rng.random() < 0.1:
            truth = respelt(rng, truth)
        if rng.random() < 0.1:
            truth = mistakes(rng, truth, LATEX)
        chosen = frames if rng.random() < 0.9 else None
        return several(rng, lambda rng, answer: framed(rng, answer, chosen), one, LATEX), truth

    return generate


def geometry(rng):
    """Boxes after a thought."""
    response, truth = math(BOXED)(rng)
    before = rng.choice(["<think>so</think>", "<think>so</think>", "", "<think>", "</think><think>", "\n<think>\n</think>"])
    return before + response, truth


def gsm8k(rng):
    truth = rng.choice([*[lambda: integer(rng)] * 8, lambda: decimal(rng), lambda: mathematical(rng)])()
    one = truth
    if rng.random() < 0.15:
        one = rng.choice([lambda: respelt(rng, truth), lambda: mathematical(rng), lambda: f"{truth}.", lambda: f"${truth}", lambda: f"+{truth}"])()
    if rng.random() < 0.2 and truth.isascii() and truth.isdigit():
        one = f"{int(truth):,}"
    frames = [*["#### %s"] * 20, "####%s", "####  %s", "### %s", "#### $%s", "The answer is %s", "#### %s dollars", "\\boxed{%s}", "%s"]
    pieces = TAGS + [".", ",", "-", "0", "7", "1,000", "..", "-.", " "]
    return several(rng, lambda rng, answer: framed(rng, answer, frames, pieces), one, pieces), truth


WORDS = (
    "a an the A The AN dog Dog dogs' New York U.S. don't co-operate theatre another a1 a_b _a the_ 1994 1,000 3.14 é ÉCOLE straße İstanbul ΣΑΣ "
    "ﬁ ² Ⅷ 五 a\u0301 the\u0ca0 a\u0903 a\u20dd an\u203f a\u200dthe a\u00a0the A. \"the\" (a) -an- ' . … “the” ’s ＿a a＿"
).split(" ")


def phrase(rng):
    return rng.choice([" ", " ", " ", "  ", "\n", "\u3000", "-", ""]).join(rng.choice(WORDS) for _ in range(rng.randint(0, 4)))


def rephrased(rng, text):
    return rng.choice([
        lambda: text, lambda: text.upper(), lambda: text.lower(), lambda: f"the {text}", lambda: f"{text}.", lambda: f" {text}\n", lambda: text.title(),
        lambda: text.replace(" ", "  "), lambda: f"“{text}”", lambda: f"\"{text}\" a", lambda: text.replace("the", ""), lambda: text.swapcase(),
    ])()


def question(rng):
    right = [phrase(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
    one = rephrased(rng, rng.choice(right)) if rng.random() < 0.85 else phrase(rng)
    target = right if rng.random() < 0.6 else right[0]
    if rng.random() < 0.02:
        target = []
    frames = ["<answer>%s</answer>"] * 12 + ["<answer> %s </answer>", "<answer>\n%s\n</answer>", "<answer>%s", "%s</answer>", "%s", "<answer><answer>%s</answer>"]
    response = several(rng, lambda rng, answer: framed(rng, answer, frames, TAGS), one, TAGS)
    if rng.random() < 0.1:
        response = rng.choice(["<answer>", "</answer>", "<answer>no</answer>"]) * rng.randint(8, 12) + response
    return response, {"target": target}


def thought(rng):
    """Tags of thinking in any order."""
    right = "<think>" + filler(rng, TAGS) + "</think>" + filler(rng, TAGS)
    any_order = "".join(rng.choice([*TAGS, "a", "\n", " ", "é"]) for _ in range(rng.randint(0, 7)))
    return mistakes(rng, right if rng.random() < 0.7 else any_order, TAGS), "1"
