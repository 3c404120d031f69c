"""Write the type of the keywords of ``create_app`` from the fields of `Settings`.

``--check`` only compares. A field that is a tuple may be given as a list.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from sluicegate.server.settings import Settings

FILE: Final = Path(__file__).parent.parent / "backend/src/sluicegate/server/create_app_keywords.py"
HEAD: Final = '''"""The settings among the keywords of ``create_app``, for type checkers.

Written from `Settings` by ``scripts/create_app_keywords.py``.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - `get_type_hints` reads it
from typing import Literal, TypedDict


class SettingsKeywords(TypedDict, total=False):
    """The settings; those that are left out are read from the environment."""
'''


def source() -> str:
    """Return the module."""
    hints = get_type_hints(Settings, include_extras=True)
    fields = "".join(
        f"\n    {name}: {rendered(hints[name])}\n{_docstring(field.description)}"
        for name, field in Settings.model_fields.items()
    )
    return HEAD + fields


def rendered(hint: Any) -> str:
    """Return the type that a caller may pass for a field."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return rendered(arguments[0])
    if origin is tuple:
        item = rendered(arguments[0])
        return f"tuple[{item}, ...] | list[{item}]"
    if origin is dict:
        return f"Mapping[{', '.join(map(rendered, arguments))}]"
    if origin is Literal:
        return f"Literal[{', '.join(map(_quoted, arguments))}]"
    if origin in (Union, types.UnionType):
        return " | ".join(map(rendered, arguments))
    return "None" if hint is type(None) else str(hint.__name__)


def _quoted(value: object) -> str:
    return f'"{value}"'


def _docstring(description: str | None) -> str:
    first = " ".join((description or "").partition("\n\n")[0].split())
    return f'    """{first}"""\n'


def main(arguments: list[str]) -> int:
    """Write the module, or compare it."""
    if arguments == ["--check"]:
        return int(FILE.read_text("utf-8") != source())
    FILE.write_text(source(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
