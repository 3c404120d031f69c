#!/bin/sh
# Writes a project with the installed wheel, and runs its tests: those of the agent with nothing of
# this tree, those of the page with the npm packages of this tree, which have the same versions.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
installed=${1:-$root/build/wheel/bin}
# Below the chat page, so that its packages are found.
project=frontend/app/.project
rm -rf "$project"
trap 'rm -rf "$root/$project"' EXIT
"$installed/sluicegate" new "$project" >/dev/null
(cd "$project" && "$installed/python" -m pytest -q -p no:randomly)
export PATH="$installed:$root/node_modules/.bin:$PATH"
export CHROMIUM="${E2E_CHROMIUM:-$(ls /usr/bin/chromium-headless-shell /usr/bin/chromium "$root/.venv/chromium/chromium" 2>/dev/null | head -n 1)}"
[ -n "$CHROMIUM" ] || unset CHROMIUM
cd "$project/page"
npm run --silent build -- --logLevel warn
# Only a defect reaches these limits, not a busy machine.
cat >patient.config.ts <<'CONFIG'
import config from "./playwright.config.ts";

export default {
  ...config,
  timeout: 180_000,
  expect: { timeout: 30_000 },
  webServer: config.webServer.map((server) => ({ ...server, timeout: 240_000 })),
};
CONFIG
npm test --silent -- --config patient.config.ts
