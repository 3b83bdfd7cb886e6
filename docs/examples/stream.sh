#!/bin/sh
# SPDX-License-Identifier: MIT
# A child of exec with mode=stream and window=1, which has one job at a time:
# its answers need not say which run they are of.

while IFS= read -r job; do
    case $job in
    *'"body":null}') echo '{"verdict":"fail","reason":"no body"}' ;;
    *) echo "$job" | sed 's/.*"body"://; s/}$//' >&2 # is logged
       echo '{"verdict":"done"}' ;;
    esac
done
