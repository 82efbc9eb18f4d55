# Everything is done by cargo; .ci/run is the whole check.
.PHONY: bench check test

check:
	.ci/run

test:
	cargo test --workspace --locked

# Compares with the peers and writes docs/benchmarks.md: as root, on a quiet
# machine. BENCH=--million for the rows over 10^6 files, --quick for a trial.
bench:
	python3 bench/run.py $(BENCH)
