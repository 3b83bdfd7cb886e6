#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds this tree in a Debian 13, with its gcc, hiredis and redis-server, and
# runs the tests whose names match PATTERN there. `./run compat` runs it. The
# system stays in DIR for the next time, what was built in build-compat/ of
# the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/install/clean_debian.sh

root=$1/debian-13
pattern=$2

give_up() { # WHY
    printf 'run: no Debian 13 to test in: %s\n\n0 passed, 1 failed\n' "$1"
    exit 1
}

[ "$(id -u)" = 0 ] || give_up 'only root can make one'
mkdir -p "$1" build-compat || give_up "$1 cannot be made"
unshare --mount --pid --fork true || give_up 'this machine lets nobody mount'
(
    flock 9
    make_debian trixie "$root"
) 9>"$1/lock" || give_up "debootstrap failed, see $root.log; it needs a network"
inside "$root" '
    export LC_ALL=C.UTF-8 WEIR_COMPAT=1
    cd /weir
    ./run test '"$(printf %q "$pattern")"'
' /dev /dev "$PWD" /weir "$PWD/build-compat" /weir/build
