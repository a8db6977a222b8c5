# Converts any values to JSON values, and to text for messages.

import math
from collections.abc import Mapping

DEEPEST_NOTE = 20


def shown(value):
    """Returns a value as text for a message."""
    text = repr(value)
    return "%s %s" % (type(value).__name__, text if len(text) <= 200 else text[:200] + "…")


def opened(value):
    """Converts arrays and tensors to numbers and lists. Recognises them by `tolist`, so no library is imported."""
    return value.tolist() if hasattr(value, "tolist") and not isinstance(value, type) else value


def number(value):
    """Returns the value as a float, or `None` if it is not a number."""
    if isinstance(value, (float, bool)):
        return float(value)
    value = opened(value)
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = opened(value[0])
    if not hasattr(type(value), "__float__"):
        return None
    try:
        return float(value)
    except Exception:
        return None


def wire(value):
    """Returns a float for JSON; a non-finite one becomes text, because JSON lacks it."""
    return value if value is None or math.isfinite(value) else repr(value)


def note(value, depth=0):
    """Converts any value to a JSON value."""
    value = opened(value)
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 63 else str(value)
    if isinstance(value, float):
        return wire(value)
    if depth < DEEPEST_NOTE and isinstance(value, Mapping):
        return {str(key): note(item, depth + 1) for key, item in value.items()}
    if depth < DEEPEST_NOTE and isinstance(value, (list, tuple, set, frozenset)):
        return [note(item, depth + 1) for item in value]
    return repr(value)
