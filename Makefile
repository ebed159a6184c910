# make book, make test, make bench: each does all its own set-up in .venv. `make help` lists the rest.
# PYTHON chooses the interpreter (3.11 or later), PORT the port of `make serve`.
PYTHON ?= python3
PORT ?= 8000
export PORT

.PHONY: help book test bench pdf binder coverage serve setup links renew clean distclean
.DEFAULT_GOAL := help

help:
	@echo "make book       execute the chapters, build the site in _build/html"
	@echo "make test       pass every test: package, chapters, site, browser"
	@echo "make bench      compare with other software, on a quiet machine: 20 minutes"
	@echo "make pdf        the book on paper, _build/drot.pdf; needs LaTeX: latexmk and xelatex"
	@echo "make binder     open and run a chapter as Binder and Colab do, in a fresh environment"
	@echo "make coverage   which lines and branches do the tests run? into tests/records/coverage.csv"
	@echo "make serve      show the built site on 127.0.0.1 (PORT=$(PORT))"
	@echo "make setup      only create .venv"
	@echo "make links      ask every outside link whether it still stands"
	@echo "make renew      write pkg/constraints.txt anew, with the newest versions that fit"
	@echo "make clean      remove what was built; distclean removes .venv too"
	@echo "PYTHON=python3.12 make ...  uses another Python (3.11 or later)"

book test bench pdf binder coverage serve setup links renew clean distclean:
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo "There is no $(PYTHON) here: install Python 3.11 or later, or say PYTHON=/path/to/python3.11 make $@"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is older than Python 3.11: install a later one, or say PYTHON=python3.11 make $@"; exit 1; }
	@exec "$(PYTHON)" book/_ext/make.py $@
