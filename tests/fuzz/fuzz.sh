#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fuzz.sh PROGRAM [LIBFUZZER-OPTION...]: run a fuzz target on its corpus. What
# it finds to grow the corpus is kept where WEIR_FUZZ_DIR says, else thrown
# away; what crashes it stays in the directory it was started in.
set -euo pipefail
program=$1
shift
name=$(basename "$program")
corpus=$(dirname "${BASH_SOURCE[0]}")/corpus/${name#fuzz_}
[ -d "$corpus" ] || {
    printf 'fuzz.sh: %s has no corpus %s\n' "$program" "$corpus" >&2
    exit 1
}
grown=${WEIR_FUZZ_DIR:-}
if [ -z "$grown" ]; then
    grown=$(mktemp -d)
    trap 'rm -rf "$grown"' EXIT
else
    grown=$grown/$name
    mkdir -p "$grown"
fi
# Targets that tell people what is wrong do so on stderr.
case $name in
fuzz_line) set -- -close_fd_mask=2 "$@" ;;
esac
# What inputs are made of, whatever the target.
words=$(dirname "${BASH_SOURCE[0]}")/words.dict
"$program" -dict="$words" -artifact_prefix="$name-" -timeout=20 -rss_limit_mb=1024 \
    -print_final_stats=1 "$@" "$grown" "$corpus"
