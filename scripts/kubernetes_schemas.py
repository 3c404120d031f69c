"""Writes the schemas of the kinds in ``deploy/kubernetes.yaml`` for the tests.

They come from the wheel of ``kubernetes-validate``, whose versions are those of Kubernetes and
which has 70 MB of them: ``pip download --no-deps kubernetes-validate==1.37.0``, then
``python scripts/kubernetes_schemas.py kubernetes_validate-1.37.0-py3-none-any.whl``. Descriptions
are left out, and unknown fields are refused.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
MANIFEST: Final = ROOT / "deploy" / "kubernetes.yaml"
SCHEMAS: Final = ROOT / "backend" / "tests" / "docs" / "kubernetes_schemas.json"
_REFERENCE: Final = "#/$defs/"


def kinds(manifest: str) -> list[tuple[str, str]]:
    """Return the API version and kind of each object of a manifest."""
    return sorted({(each["apiVersion"], each["kind"]) for each in yaml.safe_load_all(manifest)})


def file_name(api_version: str, kind: str) -> str:
    """Return the name of a schema in the package, such as ``deployment-apps-v1.json``."""
    group, _, version = api_version.rpartition("/")
    return "-".join(filter(None, (kind.lower(), group.partition(".")[0], version))) + ".json"


def short(schema: Any) -> Any:
    """Return a schema without descriptions, with references into its own document."""
    if isinstance(schema, list):
        return [short(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "description" and isinstance(value, str):
            continue
        if name == "$ref":
            kept[name] = _REFERENCE + str(value).rpartition(_REFERENCE)[2]
        else:
            kept[name] = short(value)
    return kept


def named(schema: Any) -> set[str]:
    """Return the definitions that a schema refers to."""
    return set(re.findall(r'"#/\$defs/([^"]+)"', json.dumps(schema)))


def closure(roots: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the definitions that some schemas need, also by way of others."""
    found: dict[str, Any] = {}
    open_names = named(roots)
    while open_names:
        name = open_names.pop()
        if name not in found:
            found[name] = short(definitions[name])
            open_names |= named(found[name])
    return dict(sorted(found.items()))


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        raise SystemExit("Give the path of the wheel of kubernetes-validate.")
    version = Path(arguments[0]).name.split("-")[1]
    minor = ".".join([*version.split(".")[:2], "0"])
    folder = f"kubernetes_validate/kubernetes-json-schema/v{minor}-local-strict"
    with zipfile.ZipFile(arguments[0]) as wheel:
        definitions = json.loads(wheel.read(f"{folder}/_definitions.json"))["$defs"]
        roots = {
            f"{api_version} {kind}": short(
                json.loads(wheel.read(f"{folder}/{file_name(api_version, kind)}"))
            )
            for api_version, kind in kinds(MANIFEST.read_text("utf-8"))
        }
    written = {"version": version, "kinds": roots, "$defs": closure(roots, definitions)}
    SCHEMAS.write_text(json.dumps(written, separators=(",", ":"), sort_keys=True) + "\n", "utf-8")
    print(f"{SCHEMAS.relative_to(ROOT)} has {len(roots)} kinds of Kubernetes {version}")


if __name__ == "__main__":
    main(sys.argv[1:])
