#!/bin/sh
# SPDX-License-Identifier: MIT
# exports.sh PLUGIN...: each exports its table and nothing else.
set -u
passed=0 failed=0
for plugin in "$@"; do
    symbols=$(nm -D --defined-only "$plugin" | awk '{print $3}')
    if [ "$symbols" != weir_plugin_1 ]; then
        echo "$plugin: wanted weir_plugin_1 alone, got:" $symbols
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
done
echo "$passed passed, $failed failed"
exit $((failed != 0))
