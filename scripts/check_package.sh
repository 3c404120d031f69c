#!/bin/sh
# Packs the npm package as it would be published, or takes the tarball that is named, and checks its
# entries and types.
set -eu
if [ $# -eq 0 ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  npm pack --silent --pack-destination "$folder" -w sluicegate >/dev/null
  set -- "$folder"/*.tgz
fi
# The package is ESM alone, as the AI SDK 7 is.
publint --strict "$1"
attw --quiet --profile esm-only "$1"
