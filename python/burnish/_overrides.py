"""Overrides of settings: a mapping from dotted names to Python values, as words of the command line."""

from __future__ import annotations

import math
import os
import re
from typing import Any, List, Mapping, Optional

Overrides = Mapping[str, Any]

PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
NAME = re.compile(r"[A-Za-z0-9_./-]+")
WORDS = {"null", "true", "false", "nan", "inf", "yes", "no", "on", "off"}
EXAMPLE = '{"algorithm.adv_estimator": "rloo"}'


def words_of(overrides: Optional[Overrides]) -> List[str]:
    """Returns ``key=value`` words. A key may begin with ``+`` or ``++`` (add) or be ``~key`` with None (delete)."""
    if overrides is None:
        return []
    if not isinstance(overrides, Mapping):
        raise TypeError(f"overrides is a {type(overrides).__name__}, not a mapping: write overrides={EXAMPLE}")
    words = []
    for key, value in overrides.items():
        if not isinstance(key, str):
            raise TypeError(f"the name of a setting is a text, not {key!r}: write overrides={EXAMPLE}")
        if key.startswith("~") and value is None:
            words.append(key)
        else:
            words.append(f"{key}={text_of(value, key)}")
    return words


def refuse_keywords(function: str, refused: Mapping[str, Any]) -> None:
    """Refuses settings that are written as keywords, with the way to write them."""
    for name, value in refused.items():
        dotted = name.replace("__", ".")
        raise TypeError(
            f"{function}() has no parameter {name!r}: write settings as overrides={{{dotted!r}: {value!r}}}"
        )


def text_of(value: Any, key: str) -> str:
    """Returns a value in the grammar of overrides."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else ("nan" if math.isnan(value) else str(float(value)))
    if isinstance(value, os.PathLike):
        return quoted(os.fspath(value))
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name_of(k, key)}:{text_of(v, key)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(text_of(item, key) for item in value) + "]"
    raise TypeError(f"{key} is a {type(value).__name__}: a setting is a number, a text, a bool, None, a list or a dict")


def name_of(name: Any, key: str) -> str:
    """Returns a key of a dict, which the grammar takes without quotes."""
    if isinstance(name, str) and NAME.fullmatch(name) and name.lower() not in WORDS:
        return name
    raise TypeError(f"{key} has the key {name!r}: a key is a text of letters, digits, _, -, . and /")


def quoted(text: str) -> str:
    """Returns a text that is not read as anything else. Backslashes count only before a quote."""
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    escaped = re.sub(r"(\\*)('|\Z)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), text)
    return f"'{escaped}'"
