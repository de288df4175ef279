# Every target does its own set-up; the second time there is nothing to do and it starts at once.
.PHONY: setup demo test test-long fuzz lint wheel deb clean

setup:
	@scripts/setup test

demo:
	@scripts/demo $(DEMO_ARGS)

test:
	@scripts/setup test
	@scripts/run-tests $(TEST_ARGS)

test-long:
	@scripts/setup long
	@scripts/run-tests --long $(TEST_ARGS)

fuzz:
	@scripts/setup test
	@scripts/fuzz $(FUZZ_ARGS)

lint:
	@scripts/setup test
	@scripts/lint

# dist/blast_controller-*.whl
wheel:
	@scripts/build-wheel

# dist/blast-{common,agent,controller}_*.deb
deb:
	@scripts/build-deb

clean:
	@scripts/clean
