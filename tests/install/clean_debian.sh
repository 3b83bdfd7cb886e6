# SPDX-License-Identifier: MIT
# For those who want a Debian other than this one, of which nothing is known but
# a network: debian.sh and compat.sh. Only root can make one and enter it.

# Make ROOT a minimal SUITE, unless it is one. One in which an installation was
# cut short is made anew.
make_debian() { # SUITE ROOT
    [ ! -e "$2/.complete" ] || [ -n "$(chroot "$2" dpkg --audit 2>&1)" ] ||
        return 0
    rm -rf --one-file-system "${2:?}"
    mkdir -p "$2"
    debootstrap --variant=minbase "$1" "$2" >"$2.log" 2>&1 || {
        tail -n 5 "$2.log"
        return 1
    }
    printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d"
    chmod +x "$2/usr/sbin/policy-rc.d"
    touch "$2/.complete"
}

# Commands in the Debian at ROOT, which sees each FROM as TO; what they start
# ends with them.
inside() { # ROOT SCRIPT [FROM TO]...
    unshare --mount --pid --fork --kill-child bash -euc '
        root=$1 script=$2
        shift 2
        mount --bind "$root" "$root" # so that mounts may be made within
        mount -t proc proc "$root/proc"
        for (( ; $# > 0; )); do
            mkdir -p "$root$2"
            mount --rbind "$1" "$root$2"
            shift 2
        done
        exec env -i HOME=/root LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            DEBIAN_FRONTEND=noninteractive \
            chroot "$root" bash -euo pipefail -c "$script" </dev/null
    ' inside "$@"
}
