#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `smalti completion`: what each shell then completes. zsh and fish only where they are installed.
# shellcheck source=command.sh
. "$(dirname "$0")/command.sh"
cd "$work"

"$SMALTI" completion bash >bash.sh
# shellcheck disable=SC1091 # made here
. ./bash.sh

# completes EXPECTED WORD...: the last word is completed to these.
completes() {
    local expected=$1
    shift
    # shellcheck disable=SC2034 # the function's
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _smalti
    [ "${COMPREPLY[*]}" = "$expected" ] || fail "$*: completed to '${COMPREPLY[*]}', expected '$expected'"
}
completes generate smalti gen
completes 'train index query --help --version' smalti retrieve ''

completes '--scheduler= --scheduler-config= --sched=' smalti generate --sched
completes 'f32 bf16 f16 tf32 w8a8 w8a8-bf16' smalti generate --precision ''
completes 'bf16' smalti generate --precision = b
completes 'bf16' smalti generate a star --precision = b
completes 'images' smalti retrieve index --of im
completes '' smalti generate -o file
completes '' smalti generate file

# Each command, and each long option of its help.
for command in $("$SMALTI" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    completes "$command" smalti "$command"
    for option in $("$SMALTI" "$command" --help | grep -oE '^ {2,6}(-., )?--[a-z0-9-]+=?' | grep -oE -- '--.*' || :); do
        COMP_WORDS=(smalti "$command" "$option") COMP_CWORD=2
        _smalti
        case " ${COMPREPLY[*]} " in *" $option "*) ;; *) fail "$command: $option is not completed" ;; esac
    done
done

refuse 2 'expected the name of a shell, bash, zsh or fish' "$SMALTI" completion
refuse 2 'expected the name of a shell, bash, zsh or fish' "$SMALTI" completion csh
refuse 2 "unknown command 'completion'" "$SMALTI" retrieve completion bash
"$SMALTI_BENCH" completion bash | bash -n

if command -v zsh >zsh.path; then
    "$SMALTI" completion zsh >_smalti
    zsh -n _smalti
    zsh -fc 'autoload -U compinit && compinit -u -d dump && . ./_smalti && [[ ${_comps[smalti]} == _smalti ]]' ||
        fail 'zsh does not take it'
fi
if command -v fish >fish.path; then
    "$SMALTI" completion fish >smalti.fish
    # shellcheck disable=SC2016 # nothing of ours
    HOME=$work fish -c 'source smalti.fish; complete -C "smalti retrieve in"' | grep -q '^index' ||
        fail 'fish does not complete a command'
    HOME=$work fish -c 'source smalti.fish; complete -C "smalti generate --precision b"' | grep -q '^bf16' ||
        fail 'fish does not complete a choice'
fi
