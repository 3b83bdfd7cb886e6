#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# certificates.sh DIR NAME...: an authority, DIR/ca.pem, and of each NAME the
# certificate DIR/NAME.pem with its key DIR/NAME.key.
#
#   server   for localhost, 127.0.0.1 and ::1     client   for nobody
#   other    for other.example                    expired  as server, in 2020
#   foreign  as server, of another authority      alone    as server, by itself
#   locked   as client, its key has a passphrase
set -euo pipefail
cd "$1"
shift

new_key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256)
here=DNS:localhost,IP:127.0.0.1,IP:::1

run() { # OPENSSL-ARGUMENT...
    openssl "$@" 2>log.openssl || {
        cat log.openssl >&2
        return 1
    }
}

authority() { # NAME
    run req -x509 "${new_key[@]}" -nodes -subj "/CN=$1" -days 2 \
        -keyout "$1.key" -out "$1.pem"
}

issue() { # NAME AUTHORITY FOR [OPENSSL-ARGUMENT...]
    local name=$1 by=$2
    printf 'basicConstraints=critical,CA:FALSE\nsubjectAltName=%s\n' \
        "$3" >"$name.ext"
    shift 3
    run req -new "${new_key[@]}" -nodes -subj "/CN=$name" \
        -keyout "$name.key" -out "$name.csr"
    run x509 -req -in "$name.csr" -CA "$by.pem" -CAkey "$by.key" \
        -CAcreateserial -extfile "$name.ext" -out "$name.pem" "$@"
}

authority ca
for name in "$@"; do
    case $name in
    server) issue server ca "$here" -days 2 ;;
    other) issue other ca DNS:other.example -days 2 ;;
    client) issue client ca DNS:client.example -days 2 ;;
    expired)
        # Dates can be given from OpenSSL 3.4 on, and no negative days.
        issue expired ca "$here" -not_before 20200101000000Z \
            -not_after 20200102000000Z 2>/dev/null ||
            issue expired ca "$here" -days -1
        ;;
    foreign)
        authority stranger
        issue foreign stranger "$here" -days 2
        ;;
    alone)
        run req -x509 "${new_key[@]}" -nodes -subj /CN=alone -days 2 \
            -addext "subjectAltName=$here" -keyout alone.key -out alone.pem
        ;;
    locked)
        issue locked ca DNS:client.example -days 2
        run pkey -in locked.key -aes256 -passout pass:secret -out locked.new
        mv locked.new locked.key
        ;;
    esac
done
