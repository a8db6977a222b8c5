#!/usr/bin/env python3
"""Looks at a report of `trainer report` in a real, headless Chromium.

    scripts/check/report_browser.py check REPORT.html [TWO_RUNS.html]    exit status 1 and what failed, if anything did
    scripts/check/report_browser.py shots REPORT.html FOLDER [TWO_RUNS.html]    light.png, dark.png, phone.png and overlay.png
    scripts/check/report_browser.py charts REPORT.html FILE.png METRIC...    a picture of the charts of these metrics, next to each other
    scripts/check/report_browser.py time REPORT.html    size, and time from navigation until the charts in view are drawn

Needs Python and a Chromium. Missing parts of a report (samples, a second run) are named, not checked.
"""
import argparse
import http.server
import json
import pathlib
import re
import statistics
import sys
import tempfile
import threading

from browserlib import Browser

HOSTILE = '</script><script>window.hacked=1</script><img src="https://example.invalid/x.png" onerror="window.hacked=2"> {{DATA}} &amp; <b>bold</b>'
DATA = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.S)
INK = """(canvas) => { const c = canvas.getContext("2d"), w = canvas.width, h = canvas.height, left = Math.round(w * .2), d = c.getImageData(left, 0, w - left, h).data;
    let columns = new Set(), wide = w - left;
    for (let i = 0; i < d.length; i += 4) { const r = d[i], g = d[i+1], b = d[i+2]; if (d[i+3] > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) columns.add((i / 4) % wide); }
    return columns.size / wide; }"""


def address(path):
    return pathlib.Path(path).resolve().as_uri()


def data_of(path):
    return json.loads(DATA.search(pathlib.Path(path).read_text())[2])


def number(value):
    return {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.get(value, value)


class Check:
    def __init__(self, browser, path):
        self.browser, self.path, self.data, self.failed = browser, path, data_of(path), []
        self.runs = self.data["runs"]

    def that(self, what, holds, seen=None):
        print(f"{'ok  ' if holds else 'FAIL'}  {what}{'' if holds or seen is None else f': {seen}'}")
        if not holds:
            self.failed.append(what)

    def open(self, fragment="", width=1400, height=900, phone=False, scheme="light", path=None):
        self.browser.viewport(width, height, phone)
        self.browser.scheme(scheme)
        self.browser.open(address(path or self.path) + fragment)

    def quiet(self, what):
        """No request except for the page itself, and nothing in the console."""
        asked = self.browser.requests()
        self.that(f"{what}: no network request", [url for url in asked if not url.startswith("file:///")] == [] and len(asked) == 1, asked)
        self.that(f"{what}: no error in the console", not self.browser.complaints(), self.browser.complaints())

    def curves(self):
        b = self.browser
        self.open()
        count = b.js("document.querySelectorAll('#curves .plot').length")
        self.that("there are curves", count > 0)
        drawn = []
        for i in range(count):
            b.place(f"#curves .plot:nth-child({i + 1}) .area")
            b.settle(0.1)
            drawn.append(b.js(f"({INK})(document.querySelectorAll('#curves canvas')[{i}])"))
        # A curve that is drawn has colour in most pixel columns; a few points have it at least somewhere.
        few = max(len(run["metrics"]["steps"]) for run in self.runs) < 30
        self.that("every curve is drawn", all(share > (0.005 if few else 0.25) for share in drawn), [round(share, 2) for share in drawn])
        self.quiet("curves")

    def pairs(self):
        """The page warns of pairs whose sides both become less likely, and not of others."""
        self.open()
        said = self.browser.js("document.getElementById('runs').textContent")
        series = lambda run, side: next((run["metrics"]["series"][name] for name in (f"train/logps/{side}", f"actor/logps/{side}") if name in run["metrics"]["series"]), [0])
        ends = [[series(run, side) for side in ("chosen", "rejected")] for run in self.runs]
        fell = any(all(number(side[-1]) < number(side[0]) - 5 for side in sides) for sides in ends)
        self.that("pairs: a warning where both sides fall", fell == ("Both sides fall" in said), said)

    def crosshair(self):
        b = self.browser
        self.open()
        left, top, width, height = b.place("#curves .plot:first-child .area")
        for share in (0.3, 0.55, 0.8):
            b.mouse("mouseMoved", left + width * share, top + height / 2)
            b.settle(0.2)
            self.values(f"crosshair at {share:.0%}")
        same = b.js("new Set([...document.querySelectorAll('#curves .area')].filter(a => a.plot.visible).map(a => a.getAttribute('aria-valuenow'))).size")
        self.that("all charts in view are at the same step", same == 1, same)

    def values(self, what):
        """The values of visible charts at the crosshair equal the data."""
        said = self.browser.js("""[...document.querySelectorAll('#curves .plot')].filter(p => p.querySelector('.area').plot.visible).flatMap(p => [...p.querySelectorAll('output')].map(o =>
            [p.querySelector('code').textContent, o.dataset.run, o.dataset.step, o.dataset.value, o.textContent]))""")
        wrong = []
        for names, key, step, value, text in said:
            run = next(r for i, r in enumerate(self.runs) if (r["id"] or str(i)) == key)
            if value == "":
                continue
            at = run["metrics"]["steps"].index(float(step))
            held = [run["metrics"]["series"].get(name, [None] * (at + 1))[at] for name in names.split(", ")]
            if not any(str(number(v)).lower() in (str(float(value)).lower(), value.lower()) or (v is not None and number(v) == float(value)) for v in held):
                wrong.append((names, step, value, held))
            shown = text.replace("−", "-").replace("∞", "inf")
            if not (shown == "NaN" and value == "NaN") and float(shown) != float(value.replace("Infinity", "inf")):
                wrong.append((names, step, value, text))
        self.that(f"{what}: {len(said)} values equal the data", said and not wrong, wrong[:3])

    def zoom(self):
        b = self.browser
        if max(len(run["metrics"]["steps"]) for run in self.runs) < 10:
            return
        left, top, width, height = b.place("#curves .plot:first-child .area")
        y = top + height / 2
        b.mouse("mouseMoved", left + width * 0.4, y)
        b.mouse("mousePressed", left + width * 0.4, y, button="left", buttons=1, clickCount=1)
        for share in (0.5, 0.6, 0.7):
            b.mouse("mouseMoved", left + width * share, y, button="left", buttons=1)
        b.mouse("mouseReleased", left + width * 0.7, y, button="left", clickCount=1)
        b.settle()
        self.that("dragging zooms, and the address keeps it", "range=" in b.js("location.hash"), b.js("location.hash"))
        b.key("Escape")
        self.that("Escape resets the zoom", "range=" not in b.js("location.hash"))

    def keys(self):
        b = self.browser
        self.open()
        b.key("Tab")
        self.that("the first stop of Tab is the skip link", b.js("document.activeElement.className") == "skip")
        reached = set()
        for _ in range(400):
            b.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
            b.call("Input.dispatchKeyEvent", type="keyUp", key="Tab", code="Tab", windowsVirtualKeyCode=9)
            where = b.js("(e => e.classList.contains('area') ? 'chart' : e.classList.contains('tokens') ? 'tokens' : e.id)(document.activeElement)")
            reached.add(where)
            if where == "chart" and "moved" not in reached:
                reached.add("moved")
                b.key("End")
                b.key("ArrowLeft")
                self.values("crosshair by keys")
                self.that("focus on a chart can be seen", b.js("getComputedStyle(document.activeElement).outlineStyle") != "none")
            if where == "tokens":
                break
        self.that("Tab reaches the charts", "chart" in reached)
        if self.has_samples():
            self.that("Tab reaches the samples and their tokens", {"sample-list", "tokens"} <= reached, sorted(reached))
            before = b.js("document.activeElement.nextSibling.textContent")
            b.key("ArrowRight")
            after = b.js("document.activeElement.nextSibling.textContent")
            self.that("the arrow keys tell of token after token", before != after and after.startswith("token 2"), (before, after))

    def has_samples(self):
        return any(run["samples"] for run in self.runs)

    def conversations(self):
        """Turns with their calls folded; tokens that were not sampled are grey, for every kind of tint."""
        talks = [s for run in self.runs for s in run["samples"] if s.get("messages")]
        if not talks:
            return
        b, last = self.browser, max(s["step"] for s in talks)
        for tint in ("advantage", "probability"):
            self.open(f"#kind={next(s['kind'] for s in talks if s['step'] == last)}&step={last}&tint={tint}")
            counts = b.js("[...document.querySelectorAll('.sample')].filter(s => s.querySelector('.turns')).map(s => [s.querySelectorAll('.token.context').length, s.querySelectorAll('.token.context[data-tint=up], .token.context[data-tint=down], .token.context[data-tint=doubt]').length, s.querySelectorAll('.token').length])")
            self.that(f"conversations: grey tokens have no tint by {tint}", counts and all(0 < grey < all_ and tinted == 0 for grey, tinted, all_ in counts), counts)
        folded = b.js("[...document.querySelectorAll('.turns details')].map(d => d.open)")
        calls = b.js("[...document.querySelectorAll('.turns summary .who')].map(e => e.textContent)")
        self.that("conversations: calls and their results are folded", folded and not any(folded) and any(c.startswith("call of ") for c in calls) and any(c.startswith("result") for c in calls), calls[:4])
        self.that("conversations: the prompt is shown once", b.js("[...document.querySelectorAll('.turns .turn > .who')].every(e => e.textContent !== 'user')"))
        b.click(".turns summary")
        self.that("conversations: a click unfolds a call", b.js("document.querySelector('.turns details').open && document.querySelector('.turns details pre').offsetHeight > 0"))

    def samples(self):
        if not self.has_samples():
            print("skip  this report has no samples")
            return
        b = self.browser
        self.open()
        now = lambda: b.js("document.getElementById('sample-now').textContent")
        text = lambda: b.js("[...document.querySelectorAll('.sample .tokens, .sample pre')].map(e => e.textContent).join('\\n')")
        shown = b.js("[...document.querySelectorAll('.sample')].map(s => (s.querySelector('.tokens') || s.querySelector('pre[aria-label=Response]')).textContent)")
        known = {"".join(s["tokens"]) if s.get("tokens") else s["response"] for run in self.runs for s in run["samples"]}
        self.that("responses equal the data", shown and set(shown) <= known)
        first, content = now(), text()
        if b.js("document.getElementById('sample-previous').disabled"):
            print("skip  samples of one step only")
        else:
            b.click("#sample-previous")
            self.that("a click goes to another step", now() != first and text() != content, now())
            b.js("document.getElementById('sample-list').focus()")
            b.key("ArrowRight")
            self.that("a key goes back", now() == first and text() == content, now())
            b.key("ArrowLeft")
            kept = now()
            link = b.js("location.hash")
            self.open(link)
            self.that("the address keeps the step", now() == kept, link)
        if any(s.get("tokens") and s.get("log_probs") for run in self.runs for s in run["samples"]):
            self.open("#tint=probability")
            tinted = b.js("[...document.querySelectorAll('.tokens .token[data-tint=doubt]')].filter(t => getComputedStyle(t).backgroundColor !== 'rgba(0, 0, 0, 0)' && parseFloat(getComputedStyle(t).borderBottomWidth) > 0).length")
            self.that("tokens are tinted by probability, and underlined", tinted > 0, tinted)
            b.place(".tokens")
            box = b.js("(r => [r.left + r.width / 2, r.top + r.height / 2])(document.querySelector('.tokens .token').getClientRects()[0])")
            b.mouse("mouseMoved", *box)
            b.settle()
            self.that("pointing at a token tells its numbers", "log-prob" in b.js("document.querySelector('.token-line').textContent"), b.js("document.querySelector('.token-line').textContent"))
        # Where all responses to a prompt are equally good, there is no advantage to show.
        steps = [s["step"] for run in self.runs for s in run["samples"] if s["kind"] == "train" and any(s.get("advantages") or [])]
        if steps:
            self.open(f"#kind=train&step={max(steps)}")
            self.that("tokens are tinted by advantage", b.js("document.querySelectorAll('.tokens .token[data-tint=up], .tokens .token[data-tint=down]').length") > 0)
        self.conversations()
        self.quiet("samples")

    def hostile(self):
        """Texts of the data are never markup, and the page cannot send requests."""
        b, data = self.browser, json.loads(json.dumps(self.data))
        run = data["runs"][0]
        run.update(name=HOSTILE, command=HOSTILE, error=HOSTILE, model=HOSTILE, phase=HOSTILE)
        run["metrics"]["series"][f"hostile/{HOSTILE}"] = run["metrics"]["series"][next(iter(run["metrics"]["series"]))]
        run["config"] = run["config"] + [{"key": HOSTILE, "value": HOSTILE, "from": HOSTILE}]
        base = run["samples"][-1] if run["samples"] else {"step": 1, "kind": "train", "score": 1.0}
        call = {"function": {"name": HOSTILE, "arguments": HOSTILE}}
        talk = {"messages": [{"role": HOSTILE, "content": HOSTILE, "reasoning_content": HOSTILE, "tool_calls": [call, None]}, None, {"role": "tool", "content": [None, {"text": HOSTILE}]}], "end": HOSTILE}
        base = {**base, **(talk if base.get("messages") else {}), "asked": 0, "sampled": [1, 0]}
        run["samples"] = run["samples"] + [{**base, "prompt": HOSTILE, "response": HOSTILE, "ground_truth": HOSTILE, "data_source": HOSTILE, "components": {HOSTILE: 1.0},
                                            "tokens": [HOSTILE, "x"], "log_probs": [-1.0, "-Infinity"], "advantages": [0.5, "NaN"], "advantage": 0.5}]
        page, new = pathlib.Path(self.path).read_text(), json.dumps(data).replace("<", "\\u003c")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "hostile.html"
            path.write_text(DATA.sub(lambda m: m[1] + new + m[3], page, count=1))
            self.open("#tint=advantage", path=path)
            b.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            b.settle(0.5)
            self.that("hostile texts do nothing", b.js("window.hacked === undefined && !document.querySelector('img, main script, main b:not(.chip b, .score b)')"))
            self.that("hostile texts are shown as they are", b.js(f"['runs', 'samples', 'series', 'config'].filter(id => !document.getElementById(id).textContent.includes({json.dumps(HOSTILE)})).join()") == "",
                      b.js(f"['runs', 'samples', 'series', 'config'].filter(id => !document.getElementById(id).textContent.includes({json.dumps(HOSTILE)})).join()"))
            self.quiet("hostile texts")
        self.open()
        refused = b.js("""Promise.all([fetch('http://127.0.0.1:9/').then(() => false, () => true), new Promise(r => { const i = new Image(); i.onload = () => r(false); i.onerror = () => r(true); i.src = 'http://127.0.0.1:9/x.png'; }),
            new Promise(r => { const s = document.createElement('script'); s.src = 'http://127.0.0.1:9/x.js'; s.onload = () => r(false); s.onerror = () => r(true); document.body.append(s); })]).then(all => all.every(Boolean))""")
        blocked = sum("Content Security Policy" in text for text in b.complaints())
        self.that("the policy forbids any request", refused and blocked >= 3, b.complaints())

    def looks(self):
        b = self.browser
        brightness = "(c => c.reduce((a, b) => a + b) / 3)(getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number))"
        for scheme, low, high in (("light", 200, 256), ("dark", 0, 60)):
            self.open(scheme=scheme)
            self.that(f"{scheme} where the system is", low <= b.js(brightness) < high, b.js(brightness))
            self.contrast(scheme)
        self.open("#theme=light", scheme="dark")
        self.that("the switch wins over the system", b.js(brightness) >= 200)
        for width in (360, 390):
            self.open(width=width, height=780, phone=True)
            b.js("document.querySelectorAll('.group, .command').forEach(d => { d.open = true; })")
            b.settle(0.5)
            wide = b.js("[document.documentElement.scrollWidth, innerWidth]")
            self.that(f"no horizontal scrolling at {width} px", wide[0] <= width and wide[1] == width, wide)
        small = b.js("""[...document.querySelectorAll('button, select, input:not([type=radio], [type=checkbox]), nav a, summary, .segmented label, .check')]
            .filter(e => e.offsetParent && !e.disabled).map(e => [e.textContent.slice(0, 20) || e.id, Math.round(e.getBoundingClientRect().height)]).filter(([, height]) => height < 40)""")
        self.that("what is tapped is at least 40 px high", not small, small[:5])

    def contrast(self, scheme):
        """Every text against the first opaque background behind it."""
        poor = self.browser.js("""(() => {
            const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true}); canvas.canvas.width = canvas.canvas.height = 1;
            const rgb = (layers) => { canvas.clearRect(0, 0, 1, 1); for (const l of layers) { canvas.fillStyle = l; canvas.fillRect(0, 0, 1, 1); } return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3); };
            const light = (c) => { const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
            const poor = new Map(), walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) { const e = walker.currentNode.parentElement; if (!walker.currentNode.data.trim() || !e.offsetParent || e.closest('.hidden, :disabled, script')) continue;
                const layers = []; for (let p = e; p; p = p.parentElement) layers.unshift(getComputedStyle(p).backgroundColor);
                const back = rgb(layers), front = rgb([...layers, getComputedStyle(e).color]), [a, b] = [light(back), light(front)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
                if (ratio < 4.5) poor.set(e.className || e.tagName, [walker.currentNode.data.slice(0, 20), +ratio.toFixed(2)]); }
            return [...poor]; })()""")
        self.that(f"contrast of every text is at least 4.5 ({scheme})", not poor, poor[:5])

    def overlay(self):
        b = self.browser
        if len(self.runs) < 2:
            self.that(f"{self.path} holds two runs", False, len(self.runs))
            return
        self.open()
        self.that("every run is in the legend", b.js("document.querySelectorAll('.legend button').length") == len(self.runs))
        self.that("runs share a chart", b.js("Math.max(...[...document.querySelectorAll('#curves .readout')].map(r => r.children.length))") == len(self.runs))
        left, top, width, height = b.place("#curves .plot:first-child .area")
        b.mouse("mouseMoved", left + width * 0.4, top + height / 2)
        b.settle(0.2)
        self.values("two runs under the crosshair")
        reds = "(() => { const c = document.querySelector('#curves canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] > d[i + 2] + 60 && d[i + 3] > 200) n++; return n; })()"
        both = b.js(reds)
        b.click(".legend button:nth-child(2)")
        b.place("#curves .plot:first-child .area")
        b.settle(0.2)
        hidden = b.js(reds)
        self.that("a click on the legend hides a run", both > 50 and hidden == 0 and "hide=" in b.js("location.hash"), (both, hidden))
        b.click(".legend button:nth-child(2)")
        rows = "document.querySelectorAll('#config tbody tr').length"
        keys = [{c["key"]: json.dumps(c["value"]) for c in run["config"]} for run in self.runs if run["config"]]
        if len(keys) > 1:
            different = {key for of in keys for key in of if len({json.dumps(k.get(key)) for k in keys}) > 1}
            self.that("the configuration shows what differs", b.js(rows) == len(different), (b.js(rows), len(different)))
            b.click("#config .check input")
            self.that("and all keys, if asked", b.js(rows) == len(set().union(*keys)), b.js(rows))
        self.quiet("overlay")

    def live(self):
        """A server that first adds a step and then disconnects; the view stays unchanged."""
        b, data = self.browser, json.loads(json.dumps(self.data))
        data["watch"] = True
        page = pathlib.Path(self.path).read_text().replace("connect-src 'none'", "connect-src 'self'")
        page = DATA.sub(lambda m: m[1] + json.dumps(data).replace("<", "\\u003c") + m[3], page, count=1)
        metrics = data["runs"][0]["metrics"]
        metrics["steps"] = metrics["steps"] + [metrics["steps"][-1] + 1]
        metrics["series"] = {name: values + [0.123456] for name, values in metrics["series"].items()}

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = (json.dumps(data) if self.path == "/data.json" else page).encode()
                self.send_response(200 if self.path in ("/", "/data.json") else 404)
                self.send_header("Content-Type", "application/json" if self.path == "/data.json" else "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}/"
        b.viewport(1400, 900)
        b.open(f"{origin}#log=true")
        b.place("#curves .area")
        b.js("document.querySelector('#curves .area').focus()")
        b.settle(4.5)
        self.that("live: a new step is drawn without a reload", "0.123456" in b.js("document.querySelector('#curves .readout').textContent"), b.js("document.querySelector('#curves .readout').textContent"))
        self.that("live: focus and view stay", b.js("document.activeElement.classList.contains('area') && location.hash.includes('log=true')"))
        self.that("live: only the page's own server is asked", all(url.startswith(origin) for url in b.requests()), b.requests())
        self.that("live: it is shown", b.js("document.getElementById('live').textContent") == "live")
        server.shutdown()
        server.server_close()
        b.settle(10.5)
        asked = len(b.requests())
        self.that("live: it tells when the server is gone", "gone" in b.js("document.getElementById('live').textContent"), b.js("document.getElementById('live').textContent"))
        b.settle(4)
        self.that("live: and asks no more", len(b.requests()) == asked)


def check(browser, report, second):
    one = Check(browser, report)
    for part in (one.curves, one.pairs, one.crosshair, one.zoom, one.keys, one.samples, one.hostile, one.looks, one.live):
        print(f"-- {part.__name__}")
        part()
    failed = one.failed
    if second:
        print("-- overlay")
        two = Check(browser, second)
        two.overlay()
        failed += two.failed
    print(f"{len(failed)} failed" if failed else "all well")
    return 1 if failed else 0


def shots(browser, report, folder, second):
    folder.mkdir(parents=True, exist_ok=True)

    def shot(name, path, width, height, scheme, fragment="", phone=False, act=None):
        browser.viewport(width, height, phone)
        browser.scheme(scheme)
        browser.open(address(path) + fragment)
        if act:
            act()
        browser.settle(0.8)
        browser.shot(folder / name)
        print(f"{folder / name}: {(folder / name).stat().st_size // 1000} kB")

    def point():
        left, top, width, height = browser.js("(r => [r.left, r.top, r.width, r.height])(document.querySelector('#curves .area').getBoundingClientRect())")
        browser.mouse("mouseMoved", left + width * 0.6, top + height / 2)

    shot("light.png", report, 1400, 1250, "light", act=point)
    browser.mouse("mouseMoved", 1, 1)
    shot("dark.png", report, 1400, 1250, "dark", "#timing")
    shot("phone.png", report, 390, 844, "light", "#curves", phone=True)
    if second:
        shot("overlay.png", second, 1400, 1250, "light", act=point)


def charts(browser, report, file, metrics):
    """One row of charts. A narrow window keeps the letters large when the page of the documentation scales the picture."""
    # Charts out of view are not drawn yet.
    browser.viewport(330 * len(metrics), 20000)
    browser.scheme("light")
    browser.open(address(report))
    browser.settle(1)
    kept = browser.js("""(names => {
        const plots = [...document.querySelectorAll('#curves .plot')];
        const found = names.map(name => plots.find(p => p.querySelector('code').textContent.split(', ').includes(name)));
        if (found.some(p => !p)) return plots.map(p => p.querySelector('code').textContent);
        const row = document.createElement('div');
        row.style.cssText = 'display: grid; gap: 8px; padding: 8px; background: white; grid-template-columns: repeat(' + names.length + ', minmax(0, 1fr))';
        row.id = 'chosen'; row.className = found[0].parentElement.className; row.append(...found);
        document.body.prepend(row); scrollTo(0, 0);
        return true; })(%s)""" % json.dumps(metrics))
    if kept is not True:
        raise SystemExit(f"the report has no chart of one of {', '.join(metrics)}; its charts: {', '.join(kept)}")
    browser.settle(1)
    left, top, width, height = browser.js("(r => [r.left, r.top, r.width, r.height])(document.getElementById('chosen').getBoundingClientRect())")
    browser.shot(file, clip={"x": left, "y": top, "width": width, "height": height, "scale": 1.5})
    print(f"{file}: {file.stat().st_size // 1000} kB")


def load_time(browser, report):
    browser.viewport(1400, 900)
    times = []
    for _ in range(5):
        browser.open(address(report))
        times.append(browser.js("""new Promise(r => { const look = () => { const m = performance.getEntriesByName('charts drawn')[0]; m ? r(m.startTime) : setTimeout(look, 20); }; look(); })"""))
    runs = data_of(report)["runs"]
    print(f"{pathlib.Path(report).stat().st_size / 1e6:.2f} MB, {len(runs)} runs, {max(len(r['metrics']['steps']) for r in runs)} steps, {max(len(r['metrics']['series']) for r in runs)} series: "
          f"{statistics.median(times):.0f} ms from navigation to the charts in view (median of 5: {', '.join(f'{t:.0f}' for t in times)})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", help="its program, where it is not found by itself")
    parser.add_argument("what", choices=["check", "shots", "charts", "time"])
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("more", nargs="*")
    given = parser.parse_args()
    least, most = {"check": (0, 1), "shots": (1, 2), "charts": (2, 4), "time": (0, 0)}[given.what]
    if not least <= len(given.more) <= most:
        parser.error(f"{given.what}: see --help for its files")
    with Browser(given.chromium) as browser:
        if given.what == "charts":
            return charts(browser, given.report, pathlib.Path(given.more[0]), given.more[1:])
        more = [pathlib.Path(path) for path in given.more]
        if given.what == "check":
            return check(browser, given.report, more[0] if more else None)
        if given.what == "shots":
            return shots(browser, given.report, more[0], more[1] if len(more) > 1 else None)
        return load_time(browser, given.report)


if __name__ == "__main__":
    sys.exit(main())
