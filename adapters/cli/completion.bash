# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# bash completion of weir: source this file, or install it as
# share/bash-completion/completions/weir.
#
# Commands and options are read from the help of the weir that is completed, so
# they are always its own. Topics are asked from the server that the line
# names; a private one is asked only while it runs, TAB never starts it.

# The names of commands and groups; with a group, its commands.
_weir_commands() { # WEIR [GROUP]
    if [ -n "${2-}" ]; then
        "$1" --help 2>/dev/null | sed -n "s/^  $2 \([a-z]*\) .*/\1/p"
    else
        "$1" --help 2>/dev/null |
            sed -n '/^commands/,/^$/s/^  \([a-z]*\) .*/\1/p' | sort -u
    fi
}

# The options of a command, or of all: "--name VALUE", or "--name" alone.
_weir_options() { # WEIR [WORD...]
    "$@" --help 2>/dev/null |
        sed -n 's/^  \(--[a-z-]*\) \([^ ][^ ]*\).*/\1 \2/p; t
                s/^  \(--[a-z-]*\).*/\1/p'
}

_weir_takes_value() { # OPTIONS NAME
    case $'\n'$1$'\n' in
    *$'\n'"$2 "*) return 0 ;;
    *) return 1 ;;
    esac
}

# Topics of the server that the options of the line lead to.
_weir_topics() { # WEIR [--redis URL] [--data DIR]
    local weir=$1
    shift
    case " $* ${WEIR_REDIS:+--redis }" in
    *" --redis "*) ;;
    *) "$weir" server status "$@" >/dev/null 2>&1 || return 0 ;;
    esac
    "$weir" topic list "$@" --log-level error 2>/dev/null
}

# Lines that begin with CURRENT, as words for the line. Names of files and what a
# server says are foreign: `compgen -W` would run the commands in them.
_weir_offer() { # CURRENT [BEFORE [BEHIND]]
    local word home
    while IFS= read -r word; do
        home=''
        case $word in
        '~/'*) home='~/' ;; # the shell is to expand it
        esac
        case $word in
        "$1"*) printf '%s%q%s\n' "${2-}$home" "${word#"$home"}" "${3-}" ;;
        esac
    done
}

# TOPIC=PLUGIN: topics, then plugins by name or file.
_weir_handles() { # WEIR CURRENT
    case $2 in
    *=*/* | *=.* | *=~*) compgen -f -- "${2#*=}" | _weir_offer '' "${2%%=*}=" ;;
    *=*) _weir_plugins "$1" | _weir_offer "${2#*=}" "${2%%=*}=" ;;
    *) _weir_topics "$1" "${_weir_server[@]}" | _weir_offer "$2" '' = ;;
    esac
}

_weir_plugins() { # WEIR
    "$1" plugin list 2>/dev/null | sed 's/ .*//'
}

# What may stand behind an option that takes a value.
_weir_values() { # WEIR OPTION CURRENT
    case $2 in
    --log-level) compgen -W 'debug info warn error' -- "$3" ;;
    --log-format) compgen -W 'text json' -- "$3" ;;
    --state) compgen -W 'scheduled ready running dead' -- "$3" ;;
    --topic) _weir_topics "$1" "${_weir_server[@]}" | _weir_offer "$3" ;;
    --priority) compgen -W "urgent high normal low" -- "$3" ;;
    --missed) compgen -W "once skip all" -- "$3" ;;
    --overlap) compgen -W "allow skip" -- "$3" ;;
    --handle) _weir_handles "$1" "$3" ;;
    --sort)
        compgen -W 'topic kind scheduled ready oldest running workers unserved
                    ended dead relaying done retried failed expired crashed
                    dropped lost p50 p99 rate' \
            -- "$3"
        ;;
    --data) compgen -d -- "$3" | _weir_offer '' ;;
    --config | --jsonl | --body-file | --token-file | --ids-from)
        compgen -f -- "$3" | _weir_offer ''
        ;;
    esac
}

# The names of options that are stored with a topic.
_weir_settings() { # WEIR
    "$1" topic set --help 2>/dev/null |
        sed -n '/^options of topics/,/^$/s/^  \([a-z_]*\) .*/\1=/p'
}

_weir_operands() { # WEIR COMMAND POSITION CURRENT [PREVIOUS]
    local usage
    # shellcheck disable=SC2086
    usage=$("$1" $2 --help 2>/dev/null | head -n 1)
    case "$3 $usage" in
    "0 "*TOPIC*) _weir_topics "$1" "${_weir_server[@]}" | _weir_offer "$4" ;;
    [1-9]*OPTION=VALUE*) _weir_settings "$1" | _weir_offer "$4" ;;
    "0 "*F.so*)
        compgen -f -- "$4" | _weir_offer ''
        _weir_plugins "$1" | _weir_offer "$4"
        ;;
    [01]*COMMAND*) _weir_commands "$1" "${5-}" | _weir_offer "$4" ;;
    esac
}

_weir() {
    local weir=${1/#\~\//$HOME/} line=${COMP_LINE:0:COMP_POINT}
    local -a words _weir_server=()
    local current options command='' group='' last='' operand='' cut i
    local -i operands=0

    # Words by blanks only: readline also breaks them at : and =.
    read -ra words <<<"$line"
    case $line in
    *[[:blank:]]) words+=('') ;;
    esac
    current=${words[${#words[@]} - 1]}
    options=$(_weir_options "$weir")
    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        case $last in
        --redis | --data) _weir_server+=("$last" "${words[i]}") ;;
        esac
        if [ -n "$last" ]; then
            last=''
        elif [ "${words[i]#-}" != "${words[i]}" ]; then
            if _weir_takes_value "$options" "${words[i]}"; then
                last=${words[i]}
            fi
        elif [ -z "$command" ]; then
            group="${group:+$group }${words[i]}"
            if [ -z "$(_weir_commands "$weir" "$group")" ]; then
                command=$group
                # shellcheck disable=SC2086
                options=$(_weir_options "$weir" $command)
            fi
        else
            operands+=1
            operand=${words[i]}
        fi
    done

    if [ -n "$last" ]; then
        mapfile -t COMPREPLY < <(_weir_values "$weir" "$last" "$current")
    elif [ "${current#-}" != "$current" ]; then
        mapfile -t COMPREPLY < <(
            sed 's/ .*//' <<<"$options" | _weir_offer "$current"
        )
    elif [ -z "$command" ]; then
        mapfile -t COMPREPLY < <(
            _weir_commands "$weir" "$group" | _weir_offer "$current"
        )
    else
        mapfile -t COMPREPLY < <(
            _weir_operands "$weir" "$command" "$operands" "$current" "$operand"
        )
    fi

    # Readline replaces only what stands behind its last break.
    cut=${current%"${current##*[:=]}"}
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]=${COMPREPLY[i]#"$cut"}
    done
    case ${COMPREPLY[0]-} in
    *=) compopt -o nospace 2>/dev/null ;;
    esac
}

complete -F _weir weir
