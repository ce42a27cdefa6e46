#!/bin/sh
# sanitized.sh SOURCE BUILD: builds the compiler with ASan, UBSan and asserts, and runs the text tests with
# it, the fuzzers, and the tests that let memory run out.
set -e
cmake -G Ninja -S "$1" -B "$2" -DAMPC_SANITIZE=ON -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O1 -g" > /dev/null
cmake --build "$2" --target ampc ampc_test parse_memory_test parse_fuzz_test elab_fuzz_test \
    read_fuzz_test > /dev/null
ctest --test-dir "$2" --output-on-failure --no-tests=error -R '^lit/|ampc_test|memory_test|fuzz_test' \
    -E '^lit/docs'
