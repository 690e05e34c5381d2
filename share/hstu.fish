# Completion of hstu in fish: the program itself says how a word can continue (hstu complete WORDS...). Where it expects a
# value, fish offers files.
function __hstu_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] complete $words[2..] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c hstu -f -a '(__hstu_complete)'
