# Run at every build: writes OUTPUT only when the version or the commit has changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --abbrev=12 --exclude=* --dirty=+
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#include "hstu/base/version.h"

std::string hstu::version() { return "@VERSION@ (commit @commit@)"; }
]] @ONLY)
