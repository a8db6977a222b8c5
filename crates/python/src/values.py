# Converts any values to JSON values, and to text for messages.

import datetime
import decimal
import json
import math
from collections.abc import Mapping

DEEPEST_NOTE = 20
# Key of values that JSON lacks, as the trainer sends them.
TAG = "\0python"
EPOCH = datetime.datetime(1970, 1, 1)


def received(line):
    """Parses a message of the trainer, with values that JSON lacks: NaN, dates, decimals, bytes."""
    return json.loads(line, object_hook=untagged if b"\\u0000python" in line else None)


def untagged(fields):
    kind, value = fields.get(TAG), fields.get("value")
    if kind is None:
        return fields
    if kind == "datetime":
        instant = EPOCH + datetime.timedelta(microseconds=value)
        return instant if fields["zone"] is None else instant.replace(tzinfo=datetime.timezone.utc).astimezone(zone(fields["zone"]))
    if kind == "map":
        return {key: item for key, item in value}
    return UNTAGGED[kind](value)


UNTAGGED = {
    "float": float,
    "date": lambda days: (EPOCH + datetime.timedelta(days=days)).date(),
    "time": lambda micros: (EPOCH + datetime.timedelta(microseconds=micros)).time(),
    "timedelta": lambda micros: datetime.timedelta(microseconds=micros),
    "decimal": decimal.Decimal,
    "bytes": bytes.fromhex,
}


def zone(name):
    """Returns the time zone of a name or an offset such as +02:00; UTC if Python does not know it."""
    if name[:1] in "+-":
        hours, minutes = name[1:3], name[-2:]
        offset = datetime.timedelta(hours=int(hours), minutes=int(minutes))
        return datetime.timezone(-offset if name[0] == "-" else offset)
    try:
        import zoneinfo

        return zoneinfo.ZoneInfo(name)
    except Exception:
        return datetime.timezone.utc


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
