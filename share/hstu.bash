# Completion of hstu in bash: the program itself says how a word can continue (hstu complete WORDS...). Where it expects a
# value, bash offers files.
_hstu() {
  local IFS=$'\n'
  COMPREPLY=($("$1" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
}
complete -o default -F _hstu hstu
