#!/bin/sh
# Builds .venv: the locked packages, test dependencies included, and sluicegate itself, editable.
# PYTHON names the interpreter (python3 unless given). An existing .venv is kept and brought up to date,
# unless PYTHON_GIVEN is set and .venv was made by another interpreter than PYTHON.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "sluicegate needs Python 3.11 or newer, and '$python' is not: install one and run 'make setup PYTHON=python3.12' with its name." >&2
  exit 1
fi
which_python='import sys; print(*sys.version_info[:3], sys.base_prefix)'
if [ -n "${PYTHON_GIVEN:-}" ] && [ -x .venv/bin/python ] &&
  [ "$("$python" -c "$which_python")" != "$(.venv/bin/python -c "$which_python" 2>/dev/null)" ]; then
  echo "The .venv was made by another interpreter than '$python'; it is made anew." >&2
  rm -rf .venv
fi
echo "Installing the packages of requirements.lock into .venv, which takes half a minute the first time." >&2
# A .venv whose pip does not run was interrupted, moved, or has lost its interpreter.
if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  if ! "$python" -m venv --clear .venv; then
    echo "'$python' cannot create virtual environments: on Debian and Ubuntu install the package python3-venv." >&2
    exit 1
  fi
fi
# The locks are complete; pip would look for extras that they do not name.
pip=".venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes"
$pip -r bootstrap.lock
# uv is fast but reads none of pip's settings; where it cannot reach the packages, pip may.
# The tests start servers again and again: compiled now, each of them starts a third faster, also
# where PYTHONDONTWRITEBYTECODE keeps Python from doing so itself.
UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}" \
  .venv/bin/uv pip sync --quiet --compile-bytecode --python .venv/bin/python --require-hashes requirements.lock || {
  echo "uv could not install the packages; trying pip, which takes about a minute." >&2
  $pip -r requirements.lock
}
# The project is installed last: sync removes packages that the lock does not name.
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --no-index -e .
# Compiled for the same reason as the packages.
.venv/bin/python -m compileall -q backend/src
