#!/bin/sh
# Installs the wheel of dist/ into build/wheel, an environment that holds nothing of this tree.
set -eu
cd "$(dirname "$0")/.."
environment=build/wheel
rm -rf "$environment"
.venv/bin/python -m venv --without-pip "$environment"
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}"
.venv/bin/uv pip sync --quiet --python "$environment/bin/python" --require-hashes requirements.lock
.venv/bin/uv pip install --quiet --python "$environment/bin/python" --no-deps --no-index dist/*.whl
