#include "hstu/base/stack.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

namespace hstu {
namespace {

std::string readable(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : symbol;
}

std::string line_of(const void* address) {
  Dl_info found{};
  if (::dladdr(address, &found) == 0) return fmt::format("  {}\n", address);
  const auto behind = [&](const void* begin) {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(begin);
  };
  if (found.dli_sname != nullptr)
    return fmt::format("  {} + {:#x}\n", readable(found.dli_sname), behind(found.dli_saddr));
  return fmt::format("  {} + {:#x}\n", std::filesystem::path(found.dli_fname).filename().string(),
                     behind(found.dli_fbase));
}

}  // namespace

std::string lines_of(std::span<void* const> calls) {
  std::string lines;
  for (const void* const call : calls) lines += line_of(call);
  return lines;
}

std::string stack_of_this_thread() {
  std::array<void*, 64> calls{};
  const int count = ::backtrace(calls.data(), static_cast<int>(calls.size()));
  return lines_of(std::span(calls).first(static_cast<std::size_t>(count)).subspan(1));
}

}  // namespace hstu
