#!/bin/sh
# Packs the npm package as it would be published, and checks its entries and types.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm pack --silent --pack-destination "$folder" -w sluicegate >/dev/null
# The package is ESM alone, as the AI SDK 7 is.
publint --strict "$folder"/*.tgz
attw --quiet --profile esm-only "$folder"/*.tgz
