#compdef hstu
# Completion of hstu in zsh: the program itself says how a word can continue (hstu complete WORDS...). Where it expects a
# value, zsh offers files.
local -a found
found=(${(f)"$($words[1] complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
if (($#found)); then
  found=(${${found//:/\\:}//$'\t'/:})
  _describe command found
else
  _files
fi
