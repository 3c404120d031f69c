"""Tool results that can be stored: what is not JSON becomes a note."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from google.genai import types

from sluicegate.core.json_safe import json_safe
from sluicegate.core.storable import storable_json


def storable(result: object) -> dict[str, Any] | None:
    """The result as an object that every store keeps, or None when it is fine as it is.

    Bytes, NaN, cycles and foreign objects would be shown one way live and stored another, or
    break the run when its event is stored.
    """
    if _is_plain(result):
        return None
    cleaned = _clean(result)
    # ADK: what is not an object is wrapped under this name, models too.
    return cleaned if isinstance(result, Mapping) else {"result": cleaned}


def as_object(result: object) -> dict[str, Any]:
    """The result as ADK would wrap it; None of a tool without a result is an empty one."""
    return dict(result) if isinstance(result, dict) else {"result": result}


def _is_plain(result: object) -> bool:
    try:
        text = json.dumps(result, allow_nan=False, ensure_ascii=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return r"\u0000" not in text


def _clean(value: object) -> Any:
    return storable_json(json_safe(value))


def is_native(result: object) -> bool:
    """Whether ADK itself takes every file out of a result, and nothing else is in the way.

    Such a result is left to ADK and to the callbacks of the user; the event is then neutralised.
    """
    rest = _without_parts(result, 0)
    return rest is not result and storable(rest) is None


def _without_parts(value: object, depth: int) -> object:
    """What ADK leaves of a result; the value itself where it finds no file."""
    if isinstance(value, types.Part):
        blob, file = value.inline_data, value.file_data
        has_file = blob is not None and bool(blob.data and blob.mime_type)
        has_file = has_file or (file is not None and bool(file.file_uri and file.mime_type))
        return None if has_file else value
    # ADK: media is moved out of a result only near its top.
    if depth > 1 or not isinstance(value, dict | list):
        return value
    keys = list(value) if isinstance(value, dict) else range(len(value))
    rest = {key: _without_parts(value[key], depth + 1) for key in keys}
    return value if all(rest[key] is value[key] for key in keys) else rest
