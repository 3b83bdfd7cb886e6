#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes the Debian packages as docs/operating.md says, in a clean Debian of which
# only a clone of this tree and a network are known, and uses it in another one,
# by the commands of the pages that they bring. `./run package` runs it:
# it wants root, debootstrap and some minutes. DIR keeps the clean system for
# the next time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/install/clean_debian.sh

suite=${WEIR_SUITE:-bookworm}
dir=$(realpath -m "${1:-/var/tmp/weir-package}")
failed=0

check() { # WHAT NAME SCRIPT [TEXT...]
    local what=$1 name=$2 script=$3 out text
    shift 3
    if ! out=$(inside "$dir/$name" "$script" 2>&1); then
        printf '%s\nFAILED %s\n' "$out" "$what"
        failed=$((failed + 1))
        return
    fi
    for text in "$@"; do
        if [[ $out != *"$text"* ]]; then
            printf '%s\nFAILED %s: wanted "%s"\n' "$out" "$what" "$text"
            failed=$((failed + 1))
            return
        fi
    done
    printf 'ok      %s\n' "$what"
}

fresh() { # NAME
    rm -rf --one-file-system "${dir:?}/$1"
    cp -a "$dir/base" "$dir/$1"
}

make_debian "$suite" "$dir/base"

# --- making the packages -------------------------------------------------------
fresh builder
git clone -q --no-hardlinks . "$dir/builder/root/weir"
inside "$dir/builder" '
    cd /root/weir
    ./run build
    apt-get -qq -o Dpkg::Use-Pty=0 install dpkg-dev file
    cd build && cpack -G DEB
' >"$dir/build.log" 2>&1 || {
    tail -n 30 "$dir/build.log"
    printf 'the packages were not made, see %s\n' "$dir/build.log"
    exit 1
}

# --- using them ------------------------------------------------------------------
fresh user
cp "$dir"/builder/root/weir/build/*.deb "$dir/user/root/"
cat >"$dir/user/root/blocks" <<'END'
# The fenced commands of PAGE whose number is in FROM..TO, to be run as written.
blocks() { # PAGE FROM TO
    awk -v from="$2" -v to="$3" '
        /^```sh$/ { n++; is_in = 1; next }
        /^```$/ { is_in = 0 }
        is_in && n >= from && n <= to' "/usr/share/doc/weir/$1"
}
cd /root
END

check 'apt installs it with what it needs' user '
    apt-get -qq update
    apt-get -qq -o Dpkg::Use-Pty=0 install /root/weir_*.deb \
        /root/weir-plugins_*.deb
    ! dpkg-query -W libweir0 libweir-dev
    weir --version
    weir-bench --version
' 'Setting up weir' 'weir 0.' 'weir-bench 0.'
check 'a job runs before anything else is installed' user '
    weir add order.close --id 42 --delay 1s --body "{\"order\":42}"
    weir run --handle order.close=echo --until-empty
    weir stats order.close
    weir doctor
' '"id":"42","attempt":1' 'order.close  delay' \
    'archive, deliver, echo, exec, flaky, notify'
check 'each bundled plugin loads' user '
    for name in archive deliver echo exec flaky notify; do
        weir plugin info $name
    done
' 'name     archive' 'name     deliver' 'name     exec' 'name     notify'
check 'what the manual says a plugin needs is enough' user '
    apt-get -qq -o Dpkg::Use-Pty=0 install /root/libweir*.deb
    . /root/blocks
    mkdir tutorial && cd tutorial
    eval "$(grep -o "apt install [a-z0-9 -]*" \
        /usr/share/doc/weir/plugins.md | sed "s/apt/apt-get -qq/")"
    eval "$(blocks plugins.md 1 5)"
' '100% tests passed' 'verdict  DONE' 'verdict  RETRY' 'good morning, Ada' \
    'nothing wrong, 1 topic'
check 'a plugin is found by name once it is installed' user '
    cd /root/tutorial
    cmake --install hello/build
    weir add greet --id 2 --body "{\"name\":\"Bob\"}"
    weir run --handle greet=hello --until-empty
    rm /usr/lib/weir/plugins/hello.so
' 'hello, Bob'
check 'pkg-config finds both' user '
    apt-get -qq -o Dpkg::Use-Pty=0 install pkg-config g++ libev-dev
    cd /root
    cc -std=c11 /usr/share/doc/weir/examples/producer.c -o producer \
        $(pkg-config --cflags --libs weir)
    cc -std=c11 -D_POSIX_C_SOURCE=200809L \
        /usr/share/doc/weir/examples/embed.c -o embed \
        $(pkg-config --cflags --libs weir) -lev
    weir topic list
    ./embed unix:///root/.local/state/weir/redis.sock
    pkg-config --variable=plugindir weir
    cd "$(pkg-config --variable=plugindir weir-plugin)" && ls
' 'archive.so'
check 'CMake finds weir::weir and weir::plugin, for C and C++' user '
    mkdir /root/consumer && cd /root/consumer
    cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C CXX)
find_package(weir 0.1 REQUIRED)
foreach(language c cc)
    add_library(plugin_\${language} MODULE plugin.\${language})
    target_link_libraries(plugin_\${language} PRIVATE weir::plugin)
    add_executable(program_\${language} program.\${language})
    target_link_libraries(program_\${language} PRIVATE weir::weir)
endforeach()
END
    cp /root/tutorial/hello/hello.c plugin.c
    printf "#include <weir/plugin.h>\nstatic enum weir_verdict run(void *, %s" \
        "struct weir_job *) { return WEIR_DONE; }
        WEIR_PLUGIN_EXPORT = {WEIR_PLUGIN_ABI, sizeof(struct weir_plugin),
        \"cpp\", 0, 0, 0, 0, 0, 0, run, 0, 0, 0, 0};" >plugin.cc
    printf "#include <stdio.h>\n#include <weir/thread.h>\n%s" \
        "int main(void) { return puts(weir_error_text(WEIR_EFULL)) < 0; }" |
        tee program.c >program.cc
    cmake -B build && cmake --build build
    build/program_c && build/program_cc
    weir plugin try build/libplugin_cc.so
    weir plugin info build/libplugin_c.so
' 'queue is full' 'verdict  DONE' 'name     hello'
check 'manual pages and completion are there' user '
    apt-get -qq -o Dpkg::Use-Pty=0 install man-db bash-completion
    for page in "1 weir" "1 weir-bench" "5 weir.conf" "7 weir-plugin" \
        "7 weir-guarantees"; do man $page | head -n 1; done
    set +u
    . /usr/share/bash-completion/bash_completion
    COMP_WORDS=(weir pl) COMP_CWORD=1 COMP_LINE="weir pl" COMP_POINT=7
    _completion_loader weir || true
    complete -p weir
' 'WEIR(1)' 'WEIR-BENCH(1)' 'WEIR.CONF(5)' 'WEIR-PLUGIN(7)' \
    'WEIR-GUARANTEES(7)' 'complete '
check 'systemd takes the units' user '
    apt-get -qq -o Dpkg::Use-Pty=0 install systemd
    systemd-analyze verify --man=no weir.service weir@one.service
    systemd-analyze security --offline=yes --threshold=30 \
        /usr/lib/systemd/system/weir.service | tail -n 1
' 'Overall exposure level'
check 'purging it leaves nothing' user '
    test -e /etc/weir/weir.conf
    apt-get -qq -o Dpkg::Use-Pty=0 purge weir weir-plugins libweir-dev libweir0
    ! dpkg-query -W weir
    rm -rf /var/cache/man # man keeps what it showed
    find / -xdev \( -path /proc -o -path /root -o -path /sys \) -prune \
        -o -name "*weir*" -print >/root/left
    cat /root/left
    ! test -s /root/left
'

[ "$failed" = 0 ] || exit 1
printf 'a package is %s\n' "$dir"/builder/root/weir/build/*.deb
