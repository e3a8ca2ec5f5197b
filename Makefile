PYTHON ?= python3

PIP := bin/python -m pip --quiet --disable-pip-version-check install
# Worksteal gives each process a stretch of neighbouring tests: they share fixtures and numba's cache.
PYTEST := bin/python -m pytest --numprocesses 2 --dist worksteal
CORE_TEST_DEPS := hypothesis polars pytest pytest-timeout pytest-xdist
OLDEST_TESTS := $(addprefix tests/,cli learning models tables \
	$(addprefix estimators/test_,auto.py errors.py lmnn.py lnml.py metric.py sklearn_checks.py))

# What runs on a built wheel and sdist: estimators, comparison, models, tables, command line.
DIST_TESTS := $(addprefix tests/,datasets models tables test_package.py cli/test_commands.py \
	$(addprefix estimators/test_,auto.py lmnn.py lnml.py metric.py sklearn_checks.py) \
	$(addprefix evaluation/test_,compare.py retrieval.py))
# Judges whether everyone can read the report, in a browser.
AXE := axe-core@4
EXTRAS := cli,dask,docs,faiss,onnx,sentence-transformers,xlsx
SPELLED := src docs tests benchmarks README.md CHANGELOG.md CONTRIBUTING.md

.PHONY: help test unit lint format test-oldest test-extras fuzz docs study figures bench bench-quick bench-cluster dist clean

help:
	@echo 'make test         lint, unit and test-oldest'
	@echo 'make unit         all tests but the extras, and doctests'
	@echo 'make test-extras  what make test leaves out: exports, repetitions on torch and on a cluster'
	@echo 'make fuzz         6,000 damaged and hostile files, under limits (a quarter of an hour)'
	@echo 'make lint         ruff check, ruff format --check, mypy, codespell, and the layers'
	@echo 'make format       let ruff fix and format the code'
	@echo 'make test-oldest  estimators, neighbourhoods and command line on constraints/oldest.txt'
	@echo 'make study        the study on the small data sets: table and report in build/study'
	@echo 'make docs         the site, with its gallery: build/site/html (minutes)'
	@echo 'make figures      redraw the figures and tables of the documentation'
	@echo 'make bench        measure lnml and its peers side by side (half an hour and more)'
	@echo 'make bench-quick  the same at small sizes (less than 5 minutes)'
	@echo 'make bench-cluster  fits on a local Dask cluster (a quarter of an hour and more)'
	@echo 'make dist         build wheel and sdist, and test each in an environment of its own'
	@echo 'make clean        remove environments, caches and build products'
	@echo 'Choose the interpreter with PYTHON=...; it must be Python 3.11 or newer.'

# Both environments are created at a time, which leaves no core idle.
test:
	@$(MAKE) --no-print-directory --jobs 2 lint .venv-oldest/.test
	@$(MAKE) --no-print-directory unit test-oldest

unit: .venv/.test
	.venv/$(PYTEST) -m 'not extras'

test-extras: .venv/.test
	.venv/$(PYTEST) -m extras

# The inputs that go wrong are kept in build/fuzz.
fuzz: .venv/.test
	PYTHONPATH=tests .venv/bin/python -m fuzz

lint: .venv/.test
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	.venv/bin/codespell $(SPELLED)

format: .venv/.test
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# Numba's on-disk cache is kept apart from that of .venv: the two would overwrite each other.
test-oldest: .venv-oldest/.test
	NUMBA_CACHE_DIR='$(CURDIR)/.venv-oldest/numba-cache' \
		.venv-oldest/$(PYTEST) -m 'not slow and not extras' $(OLDEST_TESTS)

study: .venv/.cli
	.venv/bin/lnml study --output build/study --force

docs: .venv-docs/.gallery
	.venv-docs/bin/python docs/build_site.py

figures: .venv/.test
	.venv/bin/python docs/figures/make_tables.py
	.venv/bin/python docs/figures/make_layers.py
	.venv/bin/python docs/figures/make_neighborhoods.py

# MNIST is measured if LNML_DATA names a directory that holds mnist.npz.
bench: .venv/.bench .venv-peers/.peers
	.venv/bin/python benchmarks/bench.py --peers .venv-peers/bin/python

bench-quick: .venv/.bench .venv-peers/.peers
	.venv/bin/python benchmarks/bench.py --quick --peers .venv-peers/bin/python \
		--output build/bench-quick

bench-cluster: .venv/.cluster
	.venv/bin/python benchmarks/cluster.py

# Each is installed into a fresh environment, with its command line and nothing from this folder.
# The tests of the sdist are those inside it.
dist: .venv/.release
	rm -rf dist build/dist
	.venv/bin/python -m build --outdir dist
	mkdir -p build/dist/unpacked
	tar -xzf dist/lnml-*.tar.gz -C build/dist/unpacked --strip-components 1
	$(call try_dist,wheel,dist/lnml-*.whl,$(CURDIR))
	$(call try_dist,sdist,dist/lnml-*.tar.gz,$(CURDIR)/build/dist/unpacked)

# $(call try_dist,name,file,folder of the tests)
define try_dist
	$(PYTHON) -m venv build/dist/$(1)
	build/dist/$(1)/$(PIP) "$$(echo $(2))[cli]" $(CORE_TEST_DEPS)
	cd $(3) && '$(CURDIR)/build/dist/$(1)/bin/python' -c \
		'import lnml, sys; sys.exit(not lnml.__file__.startswith(sys.prefix))'
	cd $(3) && $(CURDIR)/build/dist/$(1)/$(PYTEST) -m 'not slow and not extras' $(DIST_TESTS)
	cd build/dist && $(1)/bin/lnml study --data iris --output study-$(1)
endef

clean:
	rm -rf .venv .venv-docs .venv-oldest .venv-peers .grimp_cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests docs benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# Stamps. An install is repeated only when what it depends on is newer than its stamp; the test
# install contains the command line's, so it refreshes both.

.venv/.created .venv-docs/.created .venv-oldest/.created .venv-peers/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"lnml needs Python 3.11 or newer, but $(PYTHON) is Python " + sys.version.split()[0] \
		+ ". Name another one: make PYTHON=/path/to/python ...")'
	@echo 'Creating $(@D) ...'
	@$(PYTHON) -m venv $(@D)
	@$(@D)/$(PIP) 'pip>=25.1'
	@touch $@

.venv/.cli: .venv/.created pyproject.toml
	@echo 'Installing lnml and its command line into .venv ...'
	@.venv/$(PIP) -e '.[cli]'
	@touch $@

.venv/.test: .venv/.created pyproject.toml
	@echo 'Installing lnml and its test tools into .venv ...'
	@.venv/$(PIP) torch==2.13.0
	@.venv/$(PIP) -e '.[$(EXTRAS)]' --group test --group lint
	@if command -v npm > /dev/null; then npm install --prefix .venv --no-audit --no-fund $(AXE) || \
		echo 'axe-core could not be installed: its test will be skipped.' >&2; fi
	@touch .venv/.cli $@

.venv/.release: .venv/.created pyproject.toml
	@.venv/$(PIP) --group release
	@touch $@

.venv/.bench: .venv/.created pyproject.toml
	@echo 'Installing lnml and matplotlib into .venv ...'
	@.venv/$(PIP) -e '.[plot]'
	@touch $@

.venv/.cluster: .venv/.created pyproject.toml
	@echo 'Installing lnml and Dask into .venv ...'
	@.venv/$(PIP) -e '.[dask]'
	@touch $@

.venv-docs/.gallery: .venv-docs/.created pyproject.toml
	@echo 'Installing lnml, Sphinx and what the gallery uses into .venv-docs ...'
	@.venv-docs/$(PIP) -e '.[gallery]'
	@touch $@

# git and ruff leave the directory alone because of its .gitignore.
.venv-peers/.peers: .venv-peers/.created benchmarks/peers/requirements.txt
	@echo 'Installing metric-learn and mlpack into .venv-peers ...'
	@echo '*' > .venv-peers/.gitignore
	@.venv-peers/$(PIP) -r benchmarks/peers/requirements.txt
	@touch $@

.venv-oldest/.test: .venv-oldest/.created pyproject.toml constraints/oldest.txt
	@echo 'Installing lnml and its oldest supported dependencies into .venv-oldest ...'
	@.venv-oldest/$(PIP) --only-binary :all: --no-binary liac-arff -c constraints/oldest.txt \
		-e '.[cli]' $(CORE_TEST_DEPS)
	@touch $@
