# Everything is done by cargo; .ci/run is the whole check.
.PHONY: bench campaign check dist dist-all docs semver session test

check:
	.ci/run

test:
	cargo test --workspace --locked

# All tests, with N times as many kills, cuts and random cases, and with every FLIPS-th bit
# of a catalog flipped under every command: hours, as root. Then fuzzing, and the types
# of the tests on macOS and Windows. A part of the tests:
# make campaign TESTS="--test ram ram_instant"
N ?= 17
FLIPS ?= 7
campaign:
	FSURE_CAMPAIGN=$(N) FSURE_FLIPS=$(FLIPS) cargo test --workspace --locked $(TESTS)
	cargo test -p fsure --no-default-features --features integrity --locked \
	    --lib --test integrity --target-dir target/files-only
	.ci/fuzz
	FSURE_CAMPAIGN=$(N) .ci/cross

# Compares with the peers and writes docs/benchmarks.md: as root, on a quiet
# machine. BENCH=--million for the rows over 10^6 files, --quick for a trial.
bench:
	python3 bench/run.py $(BENCH)

# Packages into dist/out (docs/packaging.md): for this machine, or for every target, which takes
# about an hour on two cores. FSURE_RELEASE_KEY names the key of minisign that signs them.
dist:
	dist/build native

dist-all:
	dist/build all

# Compares the interfaces of the libraries with those at a commit or tag: what a version must
# announce. `cargo install cargo-semver-checks@0.51.0 --locked` brings it.
semver:
	cargo semver-checks --workspace --baseline-rev $(BASE)

# The documents as a site in target/book. `cargo install mdbook --locked` brings mdbook.
docs:
	mdbook build

# Pictures of the terminal for the documents, in docs/images, with the command as it is now.
session:
	cargo build --release --locked
	python3 docs/cast/record.py --path target/release
