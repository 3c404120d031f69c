# Every task of the project. `make` lists them; each works on its own, in any order, any number of times.
PYTHON ?= python3
BENCH ?= .bench/result
MINUTES ?= 30
# Of long tables `make test` plays a third, another one each day; `make test PART=all` plays all.
ifndef PART
PART := $(shell expr $$(date +%s) / 86400 % 3)
endif
# Only the recipes that name it play a part; make would export a variable of its command line to all.
unexport PART
SOAK ?= .bench/soak.json
BIN := .venv/bin
# A test waits for its servers and databases for a fourth of its time.
WORKERS ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) * 3 // 2)")
# The rooms without a server, a database or a browser.
QUICK := $(addprefix backend/tests/,core wire tools/test_function_tools.py tools/test_strict_genai.py media/test_tool_result_with_files.py media/test_model_capability_table.py testing/test_response_checks.py)
NPM := NODE_USE_SYSTEM_CA=1 PATH="$(CURDIR)/.venv/bin:$$PATH" npm
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

PAGE := frontend/app/dist/index.html
PAGE_SOURCES := package-lock.json $(shell find frontend/app frontend/client/src -type f -not -path '*/node_modules/*' -not -path '*/dist/*')

.PHONY: help setup setup-node setup-browser page demo wheel tarball test check static types imports backend faults typescript conformance mcp scenarios monkey pictures smoke release reproducible image-steps matrix canary mutants soak bench api-docs docs live-check sbom format lock node
help: ## list the tasks
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 22

# An interpreter that is given may be another one than that of the .venv.
ifneq ($(origin PYTHON),file)
export PYTHON_GIVEN := yes
WHICH := import sys; print(*sys.version_info[:3], sys.base_prefix)
ifneq ($(shell $(PYTHON) -c '$(WHICH)' 2>&1),$(shell $(BIN)/python -c '$(WHICH)' 2>&1))
.venv/.setup: another-interpreter
endif
endif
.PHONY: another-interpreter
another-interpreter:

setup: .venv/.setup ## build .venv with sluicegate and its test dependencies
.venv/.setup: pyproject.toml bootstrap.lock requirements.lock scripts/setup_python.sh
	@PYTHON="$(PYTHON)" sh scripts/setup_python.sh
	@touch $@

setup-node: node_modules/.package-lock.json ## the same for the TypeScript side: Node, npm packages
node_modules/.package-lock.json: package-lock.json .npmrc | node
	@$(NPM) ci --no-progress --loglevel=error
	@touch $@
node: .venv/.setup
	@$(BIN)/python scripts/setup_node.py

setup-browser: setup-node ## see to a Chromium for the browser tests
	@PATH="$(CURDIR)/$(BIN):$$PATH" NODE_USE_SYSTEM_CA=1 $(BIN)/python scripts/setup_browser.py

page: $(PAGE) ## build the chat page
$(PAGE): node_modules/.package-lock.json $(PAGE_SOURCES)
# It comes all at once: a server may be looking for it.
	@$(NPM) run --silent build --workspace frontend/app -- --logLevel warn --outDir "$(CURDIR)/build/page" --emptyOutDir
	@rm -rf frontend/app/dist && mv build/page frontend/app/dist

# The agent answers as soon as Python is there; the page appears when it is built.
demo: ## serve the demo agent and its page on http://127.0.0.1:8000
	@echo "Setting up, building the page and starting the server on http://127.0.0.1:8000 …" >&2
	@$(MAKE) --silent --no-print-directory setup
	@{ $(MAKE) --silent --no-print-directory page || echo "There is no page without a build: see to Node 22.12 or newer, then run 'make page'." >&2; } & \
	$(BIN)/sluicegate demo

wheel: setup page ## build the wheel, with the page inside
	@rm -f dist/*.whl
	@$(BIN)/uv build --quiet --wheel --no-build-isolation --python $(BIN)/python
	@ls dist/*.whl

tarball: setup-node ## pack the npm package into dist
	@mkdir -p dist && $(NPM) pack --silent --pack-destination dist --workspace sluicegate >/dev/null
	@ls dist/*.tgz

release: page docs ## build what is published into build/release: wheel, sdist, npm tarball, documentation, checksums
	$(BIN)/python scripts/release.py

reproducible: setup ## build the release in two fresh clones and compare the bytes; takes minutes
	$(BIN)/python scripts/compare_builds.py

image-steps: wheel ## run the steps of deploy/Dockerfile in a folder, without a container builder, and serve as its user
	$(BIN)/python scripts/image_steps.py

matrix: setup-node wheel ## play stories against the lowest and newest supported versions, and write the table
	$(BIN)/python scripts/matrix.py

canary: setup-node wheel ## the same against the newest version of everything, and which promise broke
	$(BIN)/python scripts/matrix.py --canary

# Two of the first run beside each other, since each keeps one core busy; each of the others keeps all.
test: setup-node ## every check and every test
	@$(MAKE) --no-print-directory -j2 --output-sync=target static types imports typescript mcp docs
	@$(MAKE) --no-print-directory PART=$(PART) backend faults conformance scenarios smoke

check: static types ## the quick loop of an edit: static, types, and the tests of the pure rooms
	$(BIN)/pytest -q -n $(WORKERS) $(QUICK)

static: setup ## formatting and lint of the Python code, tidiness of the tree
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python scripts/check_tree.py

types: setup ## mypy --strict over the package, its tests and the scripts
	$(BIN)/mypy

imports: setup ## the layer rules between the rooms
	$(BIN)/lint-imports

backend: setup ## the Python tests, without the faults
	PART=$(PART) $(BIN)/pytest -n $(WORKERS) --dist worksteal --ignore backend/tests/faults

faults: setup ## kill servers, cut connections, stop stores: the short form, five minutes
	PART=$(PART) $(BIN)/pytest -n $(WORKERS) --dist worksteal backend/tests/faults

typescript: setup-node ## formatting, lint and types of the TypeScript code, tests of the client package and the page
	$(NPM) run --silent check
	$(NPM) run --silent client
	$(NPM) run --silent app
	$(NPM) run --silent package

conformance: setup-node ## the real AI SDK clients against the running server
	PART=$(PART) $(NPM) run --silent conformance
	SLUICEGATE_FAST_LANE=off $(NPM) run --silent conformance -- --project stories plain stop -t "call, ai 7, stock"

mcp: setup-node ## the conformance suite of MCP against a worker, and as a worker of the server
	$(BIN)/python scripts/mcp_conformance.py

scenarios: setup-browser page ## people at the page, in a real browser
	PART=$(PART) $(NPM) run --silent scenarios

monkey: setup-browser page ## a random person at the page, MINUTES=30 over each transport; SEED and ACTIONS play a run again
	@MONKEY_MINUTES="$(MINUTES)" MONKEY_SEED="$(SEED)" MONKEY_ACTIONS="$(ACTIONS)" $(NPM) run --silent monkey

pictures: setup-browser page ## take the pictures of the page anew
	@$(NPM) run --silent pictures
	@$(BIN)/python scripts/moving_picture.py build/pictures/flow docs/images/approval-flow.webp

golden: setup-node ## write the recorded conversations in e2e/goldens anew
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	GOLDEN_DIR="$$folder" $(NPM) run --silent golden && \
	$(BIN)/python scripts/golden.py "$$folder" e2e/goldens

e2e/next/node_modules/.package-lock.json: e2e/next/package-lock.json | setup-node
	@$(NPM) ci --prefix e2e/next --no-progress --loglevel=error
	@touch $@

smoke: setup-browser wheel e2e/next/node_modules/.package-lock.json ## the wheel alone, in an environment without anything of this tree; what README and the guide to Next.js print
	@sh scripts/wheel_environment.sh
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh scripts/check_new_project.sh
	@SLUICEGATE_PROGRAMS="$(CURDIR)/build/wheel/bin" $(NPM) run --silent scenarios -- approvals --grep "over sse.*(approved payment|whole group)"
	@$(NPM) run --silent readme

mutants: setup ## break each promise once and see that a test notices; takes ten minutes
	$(BIN)/python backend/tests/mutants/run.py

soak: setup setup-node ## the long form: 1,040 double approvals, 1,460 kills, 5,500 agent trees, 20,000 schedules, 20,000 hostile chats, 60,000 fuzzed inputs; takes hours
	$(BIN)/pytest -q -n $(WORKERS) backend/tests/engine/test_positions.py backend/tests/engine/test_abandoned_turns.py backend/tests/live/google/test_matrix.py
	$(NPM) run --silent conformance
	cd backend && PYTHONPATH="$(CURDIR)/backend/src" $(CURDIR)/$(BIN)/python -m tests.faults.soak --json "$(CURDIR)/$(SOAK)"

bench: setup-browser page ## measure the server beside its peers (a table, JSON, a picture), and the page
	@mkdir -p "$(dir $(BENCH))"
	$(BIN)/python backend/bench --json "$(BENCH).json" --picture "$(BENCH).svg"
	$(NPM) run --silent bench --workspace frontend/app

api-docs: setup-node ## write the API reference of the npm package into build/api
	@$(NPM) ci --prefix frontend/api-docs --no-progress --loglevel=error
	@rm -rf build/api && cd frontend/api-docs && PATH="$(CURDIR)/$(BIN):$$PATH" node_modules/.bin/typedoc

docs: setup api-docs ## build the documentation site into build/docs/html, with strict links
	@$(NPM) run --silent build:playground --workspace frontend/app -- --logLevel warn --outDir "$(CURDIR)/build/playground" --emptyOutDir
	$(BIN)/python scripts/build_docs.py

live-check: setup ## talk to a live model with GOOGLE_API_KEY; WAV=FILE speaks a recording
	@$(BIN)/python scripts/live_check.py $(if $(WAV),--wav "$(WAV)")

sbom: setup node ## write bills of materials (CycloneDX) from the lock files into build/sbom
	@NODE_USE_SYSTEM_CA=1 PATH="$(CURDIR)/.venv/bin:$$PATH" $(BIN)/python scripts/sbom.py build/sbom

format: setup-node ## format everything and mend what can be mended without thought
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(NPM) run --silent fix

lock: setup-node ## write the lock files anew, with the newest versions the ranges allow
	$(COMPILE) --upgrade --group bootstrap -o bootstrap.lock
	$(COMPILE) --upgrade --group node -o node.lock
	$(COMPILE) --upgrade --group release -o release.lock
	$(COMPILE) --upgrade pyproject.toml --group dev -o requirements.lock
	$(COMPILE) pyproject.toml --extra postgresql --extra valkey --extra otel -c requirements.lock -o deploy/requirements.lock
	$(COMPILE) --upgrade backend/bench/peers.in -o backend/bench/peers.lock
	$(NPM) update --package-lock-only
