#!/usr/bin/env python3
"""Chats on the page of `trainer serve` in a real, headless Chromium.

    scripts/check/chat_page.py ADDRESS [--key KEY] [--say TEXT] [--expect ANSWER] [--shots FOLDER]

ADDRESS is the address of the page, such as http://127.0.0.1:8000/. KEY is the token of a server with --token-env. Checks that the page
asks its own server only, that the answer arrives, that text of the model never becomes HTML, and that nothing is wider than a
screen of 400 or 1200 pixels in light and in dark. Exit status 1 and what failed, if anything did. Needs Python and a Chromium.
"""
import argparse
import json
import pathlib
import sys
import time

from browserlib import Browser

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--key")
    parser.add_argument("--say", default="1+2=")
    parser.add_argument("--expect")
    parser.add_argument("--shots", type=pathlib.Path)
    args = parser.parse_args()
    failed = []

    def that(what, holds, seen=None):
        print(f"{'ok  ' if holds else 'FAIL'}  {what}{'' if holds or seen is None else f': {seen}'}")
        if not holds:
            failed.append(what)

    with Browser() as browser:
        def until(expression, seconds=20):
            end = time.monotonic() + seconds
            while not (value := browser.js(expression)) and time.monotonic() < end:
                browser.settle(0.1)
            return value

        def say(text):
            browser.js(f"at('message').value = {json.dumps(text)}; at('form').requestSubmit()")
            until("!running")

        def answers():
            return browser.js("[...document.querySelectorAll('.assistant')].map((turn) => turn.textContent)")

        browser.viewport(1200, 800)
        browser.open(args.address)
        if args.key:
            that("without its key, the page asks for it", until("!at('access').hidden"))
            browser.js(f"at('key').value = {json.dumps(args.key)}; at('key').dispatchEvent(new Event('change'))")
            that("with its key, the page hides the field", until("at('access').hidden"))
        that("the page names the model", until("model !== null"))
        browser.js("at('temperature').value = '0'; at('tokens').value = '8'")
        browser.click("#message")
        browser.write(args.say)
        browser.key("Enter", "\r")
        that("Enter sends the message", until("document.querySelectorAll('.assistant').length === 1 && !running"))
        first = answers()[0] if answers() else None
        that("the answer is shown", bool(first) and first != "…" and args.expect in (None, first), first)
        say(HOSTILE)
        browser.js(f"show(add('assistant', ''), {json.dumps('<think>so' + HOSTILE)}); show(add('assistant', ''), {json.dumps(HOSTILE)})")
        that("text never becomes HTML", not browser.js("window.hacked || document.querySelector('#log img, #log script')"))
        that("thinking is marked", browser.js("document.querySelector('.thinking') !== null"))
        browser.js("document.querySelector('details').open = true")
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            for width in (1200, 400):
                browser.viewport(width, 800, phone=width == 400)
                wide = browser.js("document.documentElement.scrollWidth")
                that(f"{scheme}, {width} pixels: nothing is wider than the screen", wide <= width, wide)
                if args.shots:
                    args.shots.mkdir(parents=True, exist_ok=True)
                    browser.shot(args.shots / f"chat-{scheme}-{width}.png")
        browser.js("at('clear').click()")
        that("a new chat is empty", browser.js("document.querySelectorAll('.turn').length") == 0)
        browser.js("at('tokens').value = '-1'")
        say("wrong")
        that("an error is shown", browser.js("document.querySelector('.error') !== null"))
        foreign = [url for url in browser.requests() if not url.startswith(args.address)]
        that("only its own server is asked", foreign == [], foreign)
        # The refused requests above are complaints of the network, not of the page.
        complaints = [text for text in browser.complaints() if "status of 4" not in str(text)]
        that("the page has no errors", complaints == [], complaints)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
