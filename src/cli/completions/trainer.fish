# Completion of trainer's subcommands, flags and overrides: trainer completions fish | source
complete -c trainer -a '(trainer complete -- (commandline -opc)[2..-1] (commandline -ct) 2> /dev/null)'
