.PHONY: setup demo test check bench format

ROOT := $(filter 0,$(shell id -u))
SOURCE := $(if $(ROOT),/opt/scifarm/src,$(CURDIR))
VENV := $(if $(ROOT),/opt/scifarm/venv,$(CURDIR)/.venv)
# As the user and in the place in which the farm runs. PYTEST takes more arguments: make test PYTEST="-k pipeline"
INSIDE := $(VENV)/bin/scifarm enter -- env -C $(SOURCE) PYTHONDONTWRITEBYTECODE=1 PATH="$(VENV)/bin:$$PATH"

setup:            ## everything that a farm on this machine needs
	scripts/setup.sh all

demo:             ## from a bare machine to a figure
	scripts/setup.sh python
	$(INSIDE) python examples/demo.py

test:             ## all tests, against real services and containers
	scripts/setup.sh --dev all
	$(INSIDE) python -m pytest -p no:cacheprovider $(PYTEST)

check:            ## what needs no container: style, types, imports, the wheel
	scripts/setup.sh --dev none
	$(VENV)/bin/ruff check --no-cache .
	$(VENV)/bin/ruff format --no-cache --check .
	$(VENV)/bin/mypy --cache-dir=/dev/null
	$(VENV)/bin/python -m pytest -q -p no:cacheprovider tests/test_house.py

bench:            ## the farm and plain podman side by side
	scripts/setup.sh --dev bash python
	$(INSIDE) python -m bench $(BENCH)

format:           ## put the code into its form
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
