// Functions of libraries that are loaded while the program runs.
#pragma once

#include <dlfcn.h>

#include "hstu/base/error.h"

namespace hstu {

// `function` becomes that of this name in `library`, a handle of dlopen. Error, naming `library_name`, if it
// has none.
template <typename Function>
void find_function(void* library, const char* library_name, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  check(function != nullptr, "{} has no function {}: install a later version", library_name, name);
}

}  // namespace hstu
