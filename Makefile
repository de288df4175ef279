# Every target does its own set-up; the second time there is nothing to do and it starts at once.
.PHONY: setup demo test test-all soak lint wheel deb clean

setup:
	@scripts/setup all

demo:
	@scripts/demo $(DEMO_ARGS)

# For every contributor: minutes, and a small set-up.
test:
	@scripts/setup test
	@scripts/run-tests test $(TEST_ARGS)

# Everything, Java, Spark, browser, packages and compiled engines included; TEST_ARGS=--resume goes on after a failure.
test-all:
	@scripts/setup all
	@scripts/run-tests all $(TEST_ARGS)

# Simulations and fuzzing that find more the longer they run; SOAK_ARGS="--seed 7 --minutes 30".
soak:
	@scripts/setup test
	@scripts/soak $(SOAK_ARGS)

lint:
	@scripts/setup lint
	@scripts/lint

# dist/blast_controller-*.whl
wheel:
	@scripts/build-wheel

# dist/blast-{common,agent,controller}_*.deb
deb:
	@scripts/build-deb

clean:
	@scripts/clean
