# `make help` lists what there is. PYTHON chooses the interpreter (3.11 or later) of a new .venv.
PYTHON ?= python3
PORT ?= 8000
PY := .venv/bin/python
STAMP := .venv/installed-in
# As many workers as cores (conftest.py). A page has one worker, and its kernel; of tests, who has
# no more takes some of another's.
PAGES := PYTHONUNBUFFERED=1 $(PY) -m pytest -n auto --durations=10 --durations-min=1
PYTEST := $(PAGES) --dist=worksteal

export PYTHON
export PYTHONNOUSERSITE := 1
# All workers of pytest list the same tests in the same order.
export PYTHONHASHSEED := 0
export JUPYTER_PLATFORM_DIRS := 1
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Kernels run in the folder of their chapter.
ifdef DROT_DATA
  export DROT_DATA := $(shell cd "$(DROT_DATA)" && pwd || echo "$(DROT_DATA)")
endif

.PHONY: help book check test bench setup serve clean .book .check .test .bench .setup .site
.DEFAULT_GOAL := help

help:
	@echo "make book    execute the chapters that have changed, build the site in _build/html"
	@echo "make check   what a change of the package needs while you work: no chapters, no browser"
	@echo "make test    pass every test: package, chapters, site, browser"
	@echo "make bench   compare with other software, on a quiet machine: 22 minutes"
	@echo "make serve   show the built site on 127.0.0.1 (PORT=$(PORT))"
	@echo "make setup   only create .venv, which all of them do where it is missing or out of date"
	@echo "make clean   remove what was built; without .venv too, all begins anew"
	@echo "PYTHON=python3.12 make ...  uses another Python (3.11 or later) for a new .venv"

# One make at a time in this folder, where the system has flock.
book check test bench setup:
	@mkdir -p _build
	@$(if $(shell command -v flock),flock -n -E 99 _build/.lock) $(MAKE) --no-print-directory .$@ || { \
	  [ $$? != 99 ] || echo "another make is at work in this folder: wait for it, or end it"; exit 1; }

# The stamp holds this folder's name: what was interrupted or moved has none that fits.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif
$(STAMP): pkg/pyproject.toml pkg/constraints.txt
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "There is no $(PYTHON) here: install Python 3.11 or later, or name one: PYTHON=python3.11 make ..."; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is older than Python 3.11: install a later one, or name it: PYTHON=python3.11 make ..."; exit 1; }
	@[ "$$(cat $@ 2>/dev/null)" = "$(CURDIR)" ] || "$(PYTHON)" -m venv --clear .venv || { \
	  echo "Python could not create a virtual environment; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@rm -f $@
	@echo "== installing torch, the package, and what book and tests need: the first time, minutes"
	@$(PY) -m pip install -q --disable-pip-version-check -c pkg/constraints.txt -e "./pkg[book,test]"
	@$(PY) -m pip check -q
	@printf %s "$(CURDIR)" > $@

.setup: $(STAMP)

# A site is built beside the old one, which it replaces when it is whole.
.site:
	@echo "== building the site"
	@rm -rf _build/new
	@DROT_EXECUTED=1 jupyter-book build -q -W -n --keep-going --path-output _build/new . >/dev/null
	@rm -rf _build/html
	@mv _build/new/_build/html _build/html

.book: $(STAMP)
	@echo "== chapters: executing those that have changed"
	@DROT_REUSE=1 $(PAGES) -q book || [ $$? = 5 ]  # none has changed
	@$(MAKE) --no-print-directory .site
	@echo "the book: _build/html/index.html, or make serve"

.check: $(STAMP)
	@$(PYTEST) -q -m "not slow" tests/theorems tests/properties tests/contracts pkg/src

.test: $(STAMP)
	@echo "== every chapter"
	@DROT_AFRESH=1 $(PAGES) book
	@echo "== tests and doctests, while one core builds the site"
	@$(MAKE) --no-print-directory .site & \
	  $(PYTEST) tests pkg/src --ignore=tests/site; tested=$$?; wait $$! && exit $$tested
	@echo "== tests of the site, in the browser too"
	@DROT_REQUIRE_SITE=1 $(PYTEST) tests/site

.bench: $(STAMP)
	@$(PY) -m pip install -q --disable-pip-version-check -c pkg/constraints.txt -e "./pkg[bench]" || \
	  echo "not all is here to compare with: the rows of what is missing say so"
	@$(PY) benchmarks/bench.py

serve:
	@$(PY) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

clean:
	rm -rf _build .pytest_cache .hypothesis .ruff_cache .mypy_cache
