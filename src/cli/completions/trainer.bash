# Completion of trainer's subcommands, flags and overrides: source <(trainer completions bash)
_trainer() {
    local line=${COMP_LINE:0:COMP_POINT} IFS=$' \t\n' candidate
    local -a words
    # Bash cuts words at = and :, so the line is cut again, at spaces alone.
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    local current=${words[${#words[@]} - 1]} head=""
    # Readline replaces only what follows the last of these characters.
    [[ $COMP_WORDBREAKS == *=* ]] && head=${current%"${current##*[=:]}"}
    COMPREPLY=()
    while IFS= read -r candidate; do
        COMPREPLY+=("${candidate#"$head"}")
    done < <("${words[0]}" complete -- "${words[@]:1}" 2> /dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[.=] ]] && compopt -o nospace
}
complete -o default -F _trainer trainer
