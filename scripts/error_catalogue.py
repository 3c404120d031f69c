"""Write the catalogue of errors from the classes in ``errors.py``; ``--check`` only compares.

The cause of an error is the first line of its docstring, the fix its attribute ``fix``.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate import errors
from sluicegate.errors import ModelError, RequestError, SluicegateError

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parent.parent / errors.CATALOGUE

HEAD = """# Errors

Written from `errors.py` by `scripts/error_catalogue.py`.
Each heading is the code of an error: the header `x-error-code` of a refused request, and the word
in brackets of a log line.

A user reads one sentence. What an operator needs is in the log: a failure has the error id of that
sentence (`error=…`), a refused request has its status, code, path and peer.
Credentials are removed from these lines, and what a database says is never in them.

"""
REQUESTS = """## Refused requests

The response is plain text: the sentence below, or a more specific one.
Nothing has changed on the server.
The log line is `request refused status=… code=… method=… path=… by=…` with that sentence, at most
60 a minute for one peer.

"""
MODELS = """## Failed calls of a model

The turn ends with *The agent could not finish its answer (error …)*.
The log line names the provider, the model, the status, what the provider says, and what to do:

```text
turn failed chat=… turn=… error=80c5cae2 Google gemini-3.5-flash status 429:
"You exceeded your current quota." [model_quota] Wait, raise the quota at the provider, or …
```

"""
OTHERS = """## Other errors

"""
FIXED = """### `method_not_allowed`

405. **Cause:** The address exists, but not for this method.
**Fix:** Use a method of the header `allow`.

### `internal`

500. **Cause:** An unexpected error of the server; the sentence contains an error id.
**Fix:** Search the log for the id; the line has the type of the exception and its place.

"""


def catalogue() -> str:
    """Return the page."""
    requests = "".join(_request(kind) for kind in RequestError.__subclasses__())
    models = "".join(_model(kind) for kind in [*ModelError.__subclasses__(), ModelError])
    others = "".join(_other(kind) for kind in _others())
    return f"{HEAD}{REQUESTS}{requests}{FIXED}{MODELS}{models}{OTHERS}{others}".rstrip() + "\n"


def _request(kind: type[RequestError]) -> str:
    error = kind()
    codes = ["origin", "host"] if kind is errors.Forbidden else [error.code]
    title = "".join(f"### `{code}`\n\n" for code in codes[:-1]) + f"### `{codes[-1]}`\n\n"
    return (
        f"{title}{error.status} `{kind.__name__}`. **Cause:** {_cause(kind)}\n"
        f"The user reads: *{error.message}*\n**Fix:** {kind.fix}\n\n"
    )


def _model(kind: type[ModelError]) -> str:
    return (
        f"### `{kind.code}`\n\n`{kind.__name__}`. **Cause:** {_cause(kind)}\n"
        f"**Fix:** {kind.fix}\n\n"
    )


def _others() -> Iterator[type[SluicegateError]]:
    for kind in vars(errors).values():
        if not (isinstance(kind, type) and issubclass(kind, SluicegateError)):
            continue
        if "fix" in vars(kind) and not issubclass(kind, RequestError | ModelError):
            yield kind


def _other(kind: type[SluicegateError]) -> str:
    fix = vars(kind)["fix"]
    return f"### `{kind.__name__}`\n\n**Cause:** {_cause(kind)}\n**Fix:** {fix}\n\n"


def _cause(kind: type[SluicegateError]) -> str:
    text = inspect.getdoc(kind) or ""
    line = " ".join(text.partition("\n\n")[0].split()).replace("``", "`")
    return re.sub(r" \([AT]\d(, [AT]\d)*\)", "", line)


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    if arguments == ["--check"]:
        return int(PAGE.read_text("utf-8") != catalogue())
    PAGE.write_text(catalogue(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
