"""The report: gpu-check.json and gpu-check.md, written after every part, so that an aborted run leaves its results."""
import json

from benchlib import report


class Report:
    def __init__(self, args, order):
        self.folder, self.order = args.out, order
        kept = args.out / "gpu-check.json"
        before = json.loads(kept.read_text()) if kept.exists() else {}
        self.result = {
            "trainer": report.output([args.trainer, "--version"]), "device": args.device, "dtype": args.dtype, "card": args.card,
            "machine": report.machine(), "settings": {name: str(value) for name, value in vars(args).items()},
            "parts": before.get("parts", {}) if before.get("device") == args.device else {}}

    def add(self, part, found):
        parts = {**self.result["parts"], part: found}
        self.result["parts"] = {name: parts[name] for name in self.order if name in parts}
        report.write(self.folder, "gpu-check", self.result, page(self.result), show=False)

    def close(self, asked):
        """Shows the page and returns the exit status: 1 if one of the requested parts failed."""
        print(f"\n{page(self.result)}\nwritten: {self.folder / 'gpu-check.json'} and .md", flush=True)
        return int(any(state(self.result["parts"][part]) == "FAILED" for part in asked))


def state(found):
    if any(one.get("holds") is False for one in found["checks"]):
        return "FAILED"
    if "skipped" in found:
        return "skipped"
    left_out = sum("skipped" in one for one in found["checks"])
    return f"holds, {left_out} left out" if left_out else "holds"


def line(one):
    """A finding in its printed form."""
    if "row" in one:
        return "   " + one["table"] + ": " + ", ".join(f"{name} {report.number(value)}" for name, value in one["row"].items())
    if "skipped" in one:
        return f"-  {one['check']} skipped: {one['skipped']}"
    return ("   " if one["holds"] else "NO ") + f"{one['check']} {exact(one.get('found', one.get('error', '')))}"


def exact(value):
    """Compared values show more digits than times."""
    return f"{value:.7g}" if isinstance(value, float) else value


def page(result):
    machine = result["machine"]
    gpu = machine.get("gpu") or result["card"] or "no GPU that nvidia-smi or torch knows"
    text = (f"# A binary on a GPU\n\n{result['trainer']}; device {result['device']}: {gpu}; {machine['processor']}, "
            f"{machine['cores']} cores.\n\n")
    text += report.table(["part", "", "seconds"], [[part, state(found), found["seconds"]] for part, found in result["parts"].items()])
    for part, found in result["parts"].items():
        text += f"\n## {part}\n" + (f"\nSkipped: {found['skipped']}.\n" if "skipped" in found else "")
        text += of_checks(found["checks"]) + of_tables(found["checks"])
    return text


def of_checks(found):
    text = ""
    checks = [one for one in found if "holds" in one]
    if checks:
        text += "\n" + report.table(["check", "found", "wanted", "tolerance", "holds"], [
            [one["check"], exact(one.get("found")), exact(one.get("wanted")), one.get("tolerance"), "yes" if one["holds"] else "NO"]
            for one in checks])
    for one in found:
        if "skipped" in one:
            text += f"\n{one['check']} was left out: {one['skipped']}.\n"
        if "error" in one:
            text += f"\n{one['check']}:\n\n```\n{one['error']}\n```\n"
    return text


def of_tables(found):
    """Rows of one title are one table, with the columns of the first; columns without a value in any row are left out."""
    text, tables = "", {}
    for one in found:
        if "row" in one:
            tables.setdefault(one["table"], []).append(one["row"])
    for title, rows in tables.items():
        head = [name for name in rows[0] if any(row.get(name) is not None for row in rows)]
        text += f"\n{title}:\n\n" + report.table(head, [[row.get(name) for name in head] for row in rows])
    return text
