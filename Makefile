# Everything is done by cargo; .ci/run is the whole check.
.PHONY: check test

check:
	.ci/run

test:
	cargo test --workspace --locked
