#compdef trainer
# Completion of trainer's subcommands, flags and overrides: source <(trainer completions zsh)
_trainer() {
    local -a found open closed
    found=(${(f)"$(trainer complete -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2> /dev/null)"})
    (( ${#found} )) || { _files; return }
    open=(${(M)found:#*[.=]})
    closed=(${found:#*[.=]})
    compadd -Q -S '' -a open
    compadd -Q -a closed
}
if [[ ${funcstack[1]} == _trainer ]]; then _trainer "$@"; else compdef _trainer trainer; fi
