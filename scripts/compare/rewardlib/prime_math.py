"""Answers to competition problems, for the comparison with verl's prime_math: `case(random)` is a response and a ground truth,
mostly similar, in every form that the rules know and in some that they do not."""

from . import answers

UNITS = ["cm", "meters", "degrees", "^\\circ", " feet", " miles", " hours", "\\text{ cm}", " cm^2", " dollars", "\\text{ m}", " inches"]
WORDS = ["yes", "no", "Tuesday", "\\text{even}", "none", "A", "B", "(C)", "\\text{(D)}", "even", "odd", "\\mathrm{E}", "triangle", "x", "AB"]
SYMBOLS = ["x", "y", "n", "a", "r", "k"]
RESPONSES = [
    "{}", "{}", "\\boxed{{{}}}", "\\boxed{{{}}}", "\\boxed{{{}}}", "The answer is {}", "The answer is: ${}$.", "Answer: {}", "Step 1: think.\nStep 2: so \\boxed{{{}}}",
    "So x = {}", "Therefore we get {}", "{} is the answer", "The answers are {}", "the result must be {}", "Step 2: \\boxed{{7}} no, \\boxed{{{}}}.",
    "ANSWER IS \\fbox{{{}}}", "we find x = 3. Then it is {}", "It is {}. That is all", "$\\boxed{{ {} }}$", "the answer is:\n{}", "{} are the answers\n", "İ is {}", "  {}  \n",
    "\\boxed{{{}", "x \\in {}", "The final answer is \\boxed{{{}}} dollars. Good", "which equals ${}$", "is ${}",
]


def integer(random):
    return random.choice([random.randint(-9, 20), random.randint(-9, 20), random.randint(-2000, 2000), random.randint(0, 10**7), 10 ** random.randint(0, 18)])


def number(random):
    """One number in some form."""
    n, d = integer(random), random.choice([2, 3, 4, 5, 7, 8, 10, 12, 25, 100, 0])
    small = random.randint(1, 9)
    return random.choice([
        str(n), str(n), f"{n}.0", f"{n:,}", f"{n}.", f"+{n}", f"0{n}", f" {n} ", f"{n / 4}", f"{n / 4}0", f"{n / 100}", f".{small}", f"0.{small}", f"{n / 7}", f"{n / 7:.4f}", f"{n / 7:.6f}",
        f"{n}/{d}", f"{n} / {d}", f"{2 * n}/{2 * d}", f"\\frac{{{n}}}{{{d}}}", f"\\dfrac{{{n}}}{{{d}}}", f"-\\frac{{{small}}}{{{d}}}", f"\\frac{small}{d % 10}", f"\\tfrac {small} {d % 10}", f"\\frac{small}{{{d}}}", f"{small} {abs(n) % 10}/{d}", f"{small}\\frac{{1}}{{{d}}}", f"{small} \\frac{{1}}{{{d}}}",
        f"{n}%", f"{n}\\%", f"{abs(n)}.5%", f"${n}", f"\\${n}", f"\\$ {n:,}", f"{n}{random.choice(UNITS)}", f"{abs(n)}{random.choice(UNITS)}", f"{small} million", f"{small}.5 million", f"{small}e3", f"1e{small}", f"{n}^\\circ", f"{n}^{{\\circ}}", f"{n}_{d}", f"{abs(n)}_{{{d}}}", f"({n})_5",
        f"{small}^{random.randint(1, 12)}", f"2^{{{small}}}", f"{small}*{n}", f"{small}+{n}", f"{n}-{small}", f"{small} \\cdot {n}", f"{small} \\times 10^{small}", f"({small})({n})", f"{small}({n})", f"-({n})", f"{n}{{,}}000", f"{abs(n) % 100},000", f"{abs(n) % 100},\\!000", f"{abs(n) % 100}\\,000", f"{{{n}}}",
        f"\\text{{{n}}}", f"{n}!", f"--{abs(n)}", f"- {abs(n)}", f"{n}°", f"1_000", f"{n}/({d})", f"({n})/{d}", f"{n}:{d}", f"\\left({n}\\right)", f"0.\\overline{{{small}}}", f"0.{small}{small}{small}", "nan", "inf", "\\infty", "٣", "²", "0", "-0", "-0.0", "0.00", "1/3", "0.333333333333333", "0.3333", "33.33", "0.5", "\\frac{1}{2}",
    ])


def surd(random):
    a, b = random.randint(1, 12), random.randint(2, 12)
    return random.choice([f"\\sqrt{{{b}}}", f"\\sqrt{b % 10}", f"{a}\\sqrt{{{b}}}", f"\\frac{{\\sqrt{{{b}}}}}{{{a}}}", f"{a}+\\sqrt{{{b}}}", f"{a} - {b}\\sqrt{{3}}", f"sqrt({b})", f"{a}sqrt{b}", f"\\sqrt[3]{{{b}}}", f"\\sqrt{{{a}}}\\sqrt{{{b}}}", f"\\sqrt {b}"])


def circle(random):
    a, b = random.randint(1, 12), random.randint(2, 12)
    return random.choice([f"{a}\\pi", f"\\pi", f"\\frac{{{a}\\pi}}{{{b}}}", f"\\frac{{{a}}}{{{b}}}\\pi", f"{a} \\pi", f"{a}\\pi/{b}", f"\\pi/{b}", f"{a}*\\pi", f"{a * 3.14}", f"{a * 3.14159265358979}", f"{a}pi", f"{a}\\pi+{b}", f"\\pi^2", f"(0, {a}\\pi)", f"[{a}\\pi, {b}\\pi]", f"-{a}\\pi", f"{a}\\pi\\pi", f"{a}^\\pi", f"({a}+{b})*\\pi", f"{a}\\pi r", f"{a}\\pi \\text{{ cm}}"])


def polynomial(random):
    s, t = random.sample(SYMBOLS, 2)
    a, b, c = (random.randint(1, 9) for _ in range(3))
    return random.choice([
        s, f"{a}{s}", f"{s}+{a}", f"{a}+{s}", f"{a}{s}+{b}", f"{b}+{a}{s}", f"{a}*{s} + {b}", f"{s}^2+{a}{s}+{b}", f"({s}+1)^2", f"{s}^2+2{s}+1", f"{a}({s}+{b})", f"{s}({s}+{a})", f"{s}^2+{a}{s}", f"{s}{t}", f"{t}{s}", f"{s} {t}", f"{s}*{t}", f"\\frac{{{s}}}{{{a}}}", f"{s}/{a}", f"\\frac{{1}}{{{s}}}", f"{s}^{{{a}}}", f"{s}^{a}", f"{s} = {a}", f"{s}={a}", f"{a}={s}", f"y = {a}{s}+{b}",
        f"{s}^{{10}}", f"({s}-{a})({s}+{a})", f"{s}^2-{a * a}", f"{a}{s}-{b}{t}", f"-{b}{t}+{a}{s}", f"{s} \\le {a}", f"{s} < {a}", f"{a}{s}^2{t}", f"{s}{a}", f"{s}!", f"0.5{s}", f"{s}/2", f"\\sin {s}", f"\\ln {a}", f"\\log_{{2}} {a}", f"e^{s}", f"2^{s}", f"{s}_{a}", f"|{s}|", f"f({s})={a}{s}", f"{a}{s}+{b}{t}+{c}z", f"{a}i", f"{a}+{b}i", f"{b}i+{a}", f"\\alpha", f"\\pm {a}",
    ])


def several(random, depth=0):
    """A tuple, interval, set, list or union."""
    item = lambda: random.choice([number, number, lambda r: str(r.randint(-5, 9)), surd, polynomial, circle])(random)
    items = [item() for _ in range(random.randint(1, 3))]
    comma = random.choice([",", ", ", ", "])
    inner = comma.join(items)
    rows, columns = " \\\\ ".join(items), " & ".join(items)
    return random.choice([
        f"({inner})", f"({inner})", f"[{inner}]", f"({inner}]", f"[{inner})", f"\\left({inner}\\right)", f"\\{{{inner}\\}}", inner, " and ".join(items), " or ".join(items), f"Interval({inner})", f"Interval.open({inner})", f"Interval.Ropen({inner})", f"Interval.Lopen({inner})", f"Point({inner})", f"(-\\infty, {items[0]})", f"(-\\infty, {items[0]}] \\cup [{items[-1]}, \\infty)",
        f"\\begin{{pmatrix}} {rows} \\end{{pmatrix}}", f"\\begin{{pmatrix}}{columns}\\end{{pmatrix}}", f"\\text{{{inner}}}", f"({inner}), ({inner})", f"{{{inner}}}", f"x={items[0]}, y={items[-1]}",
    ])


def word(random):
    return random.choice(WORDS + ["", "\\sqrt", "\\frac", "\\frac1", "{", "}", "()", "5 \\text{ or } 6", "\\text{ a}\\text{ b}", "\\\\", "$", "no solution", "\\emptyset", "3 and 4", "12:30", "\\angle A", "90^\\circ C", "1\n", "7!"])


FORMS = [number, number, number, number, answers.mathematical, surd, circle, polynomial, polynomial, several, several, word]
REPLACED = [("\\frac", "\\dfrac"), ("\\dfrac", "\\tfrac"), (" ", ""), (",", ", "), ("(", "["), (")", "]"), ("(", "\\left("), (")", "\\right)"), ("\\sqrt", "sqrt"), ("\\pi", "pi"), ("{", ""), ("}", ""), ("+", " + "), ("-", "- "), ("1", "1.0"), ("2", "2.0"), ("2", "4"), ("3", "3.0001"), ("5", "5%"), ("0.", "."), ("1", "01"), ("x", "X"), ("\\cdot", "*"), ("^", "**"), (",", ""), ("\\", ""), ("1", "2"), ("7", "70"), ("\\%", "%")]


def near(random, truth):
    """Another form of this answer, or a slightly wrong one."""
    for _ in range(random.randint(1, 2)):
        kind = random.randrange(10)
        if kind < 4:
            old, new = random.choice([pair for pair in REPLACED if pair[0] in truth] or [("", "")])
            truth = truth.replace(old, new, random.choice([1, -1])) if old else truth
        elif kind == 4:
            truth = random.choice(["${}$", "{}.", " {}", "({})", "{{{}}}", "\\text{{{}}}", "x={}", "{}\n", "\\left({}\\right)", "-{}", "+{}", "{}%", "${}", "{} cm", "1*{}", "{}+0", "{}*1", "({})*2/2", "Point{}", "Interval{}"]).format(truth)
        elif kind == 5:
            try:
                value = eval(truth.replace("^", "**"), {"__builtins__": {}})
                truth = random.choice([str(value), str(float(value)), f"{float(value):.3f}", f"{float(value) * 100}", f"{float(value) / 100}", f"{value}/1", f"{2 * value}/2", f"{value * 1.00005}", f"{value * 1.0002}"])
            except Exception:
                pass
        elif kind == 6 and "," in truth:
            parts = truth.split(",")
            random.shuffle(parts)
            truth = ",".join(parts)
        elif kind == 7 and truth:
            at = random.randrange(len(truth))
            truth = truth[:at] + random.choice(["", random.choice("0123456789 ,./%$(){}[]+-*^xX_")]) + truth[at + random.randint(0, 1):]
    return truth


def case(random):
    truth = random.choice(FORMS)(random)
    kind = random.randrange(10)
    given = near(random, truth) if kind < 6 else random.choice(FORMS)(random) if kind < 9 else near(random, number(random))
    if random.random() < 0.03:
        at = random.randint(0, len(given))
        given = given[:at] + random.choice(answers.UNICODE) + given[at:]
    return random.choice(RESPONSES).format(given), truth
