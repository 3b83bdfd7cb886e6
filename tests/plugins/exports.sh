#!/bin/sh
# SPDX-License-Identifier: MIT
# exports.sh PLUGIN...: each exports its table and nothing else.
set -u
wrong=0
for plugin in "$@"; do
    symbols=$(nm -D --defined-only "$plugin" | awk '{print $3}')
    if [ "$symbols" != weir_plugin_1 ]; then
        echo "$plugin: wanted weir_plugin_1 alone, got:" $symbols
        wrong=1
    fi
done
exit $wrong
