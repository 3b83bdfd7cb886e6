#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# weir at work: a shop closes orders that were not paid in time. The orders are
# in orders.json, one on each line. Everything happens on a private server in a
# temporary directory; both are gone at the end, also after Ctrl-C.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${WEIR_BUILD:-$here/../../build}
weir=$build/weir

[ -x "$weir" ] || {
    echo "demo: $weir is not built; run ./run build" >&2
    exit 1
}

bold='' dim='' green='' yellow='' red='' plain=''
if [ -t 1 ]; then
    bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
    green=$'\e[32m' yellow=$'\e[33m' red=$'\e[31m'
fi

WEIR_DATA=$(mktemp -d "${TMPDIR:-/tmp}/weir-demo-XXXXXX")
export WEIR_DATA
unset WEIR_REDIS WEIR_PLUGIN_PATH

clean_up() {
    trap - EXIT
    "$weir" server stop --log-level warn 2>/dev/null || true
    rm -rf "$WEIR_DATA"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap '' PIPE # a reader that went away: clean up all the same

step() {
    printf '\n%s%s%s\n' "$bold" "$*" "$plain"
}

# Show a command as one would type it, then run it.
show() {
    local word
    printf '%s$ weir' "$dim"
    for word; do
        case $word in
        *[!A-Za-z0-9.=-]*) printf " '%s'" "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    printf '%s\n' "$plain"
    "$weir" "$@" --log-level warn
}

# Value of a text field in a line of orders.json.
field() { # NAME LINE
    [[ $2 =~ \"$1\":\"([^\"]*)\" ]] && printf '%s' "${BASH_REMATCH[1]}"
}

add_orders() {
    local line id
    while read -r line; do
        [[ $line =~ \"body\":(\{.*\})\},?$ ]] || continue
        id=$("$weir" add order.close --log-level warn \
            --id "$(field id "$line")" --delay "$(field delay "$line")" \
            --url "$(field url "$line")" --body "${BASH_REMATCH[1]}")
        printf '  order %s, closed in %-6s unless paid, of %s\n' "$id" \
            "$(field delay "$line")" "$(field customer "$line")"
    done <"$here/orders.json"
}

# What the worker says: JSON lines of the handler echo, log lines of weir. Reads
# to the end in any case, or the worker would try its output again for hours.
tell() {
    local line
    set +e
    while read -r line; do
        case $line in
        '{'*)
            [[ $line =~ \"late_ms\":([0-9.]+) ]] || continue
            printf '  %sclosed%s  order %s of %s, %s ms after it was due\n' \
                "$green" "$plain" "$(field id "$line")" \
                "$(field customer "$line")" "${BASH_REMATCH[1]}"
            ;;
        *' error '*) printf '  %s%s%s\n' "$red" "$line" "$plain" ;;
        *' warn '*) printf '  %s%s%s\n' "$yellow" "$line" "$plain" ;;
        *) printf '  %s%s%s\n' "$dim" "$line" "$plain" ;;
        esac 2>/dev/null
    done
}

step 'Five orders, each to be closed after a while'
add_orders

step 'Two customers are to be told; the mail server fails twice in a row'
show add order.notify --id mail-1001 --delay 1s --retry '1s 1s' \
    --body '{"to":"ada@example.com"}'
show add order.notify --id mail-1002 --delay 1s --retry 1s \
    --body '{"to":"jun@example.com"}'

step 'Order 1004 was paid in time'
show delete order.close 1004

step 'A worker serves both topics until nothing is left'
"$weir" run --until-empty --handle order.close=echo \
    --handle 'order.notify=flaky?fail=2' 2>&1 | tell

step 'mail-1001 went through at the third attempt; mail-1002 had only two'
show dead list order.notify
show stats
