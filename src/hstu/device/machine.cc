#include "hstu/device/machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "hstu/base/contains.h"
#include "hstu/base/files.h"
#include "hstu/base/text.h"
#include "hstu/device/cuda_calls.h"
#include "hstu/device/gpu_specs.h"

namespace hstu {
namespace {

constexpr std::array kKernelSets = {
    "sse4_2",   "f16c",     "bmi2",     "fma",         "avx2",        "avx_vnni",    "avx512f",
    "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
    "amx_bf16", "amx_int8", "asimd",    "bf16",        "i8mm",        "sve",         "sve2"};

// Files under /proc and /sys state no size, so they are read as streams. "" when absent.
std::string read_stream(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\"\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\"\n") - first + 1);
}

std::string operating_system() {
  for (const std::string& line : split(read_stream("/etc/os-release"), '\n')) {
    if (line.starts_with("PRETTY_NAME=")) return std::string(trimmed(std::string_view(line).substr(12)));
  }
  return "unknown";
}

int usable_cores(int logical_cores) {
  cpu_set_t mask;
  int cores = ::sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : logical_cores;
  double quota = 0, period = 0;  // "max 100000" or "150000 100000"
  if (std::istringstream(read_stream("/sys/fs/cgroup/cpu.max")) >> quota >> period && period > 0) {
    cores = std::min(cores, std::max(1, static_cast<int>(std::lround(quota / period))));
  }
  return cores;
}

std::int64_t usable_memory() {
  std::int64_t bytes = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::int64_t limit = 0;  // "max" is no number
    if (std::istringstream(read_stream(path)) >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

// The first of `names` that the dynamic linker finds, as a full path.
std::optional<std::string> find_library(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    void* library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    struct link_map* map = nullptr;
    std::string path = name;
    if (::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path = map->l_name;
    ::dlclose(library);
    return path;
  }
  return std::nullopt;
}

std::optional<std::string> find_program(const char* name) {
  const char* folders = std::getenv("PATH");
  for (const std::string& folder : split(folders == nullptr ? "" : folders, ':')) {
    const std::string path = (Path(folder) / name).string();
    if (!folder.empty() && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

// null where nothing is known.
Json specs_json(const std::optional<GpuSpecs>& specs) {
  if (!specs) return {};
  return {{"estimated", specs->estimated},
          {"bf16_flops", specs->bf16},
          {"fp16_flops", specs->fp16},
          {"tf32_flops", specs->tf32},
          {"fp32_flops", specs->fp32},
          {"fp8_flops", specs->fp8},
          {"memory_bytes_per_second", specs->memory_bandwidth},
          {"l2_bytes", specs->l2_bytes}};
}

}  // namespace

bool Cpu::has(std::string_view instruction_set) const {
  return contains(instruction_sets, instruction_set);
}

Cpu parse_cpuinfo(std::string_view text) {
  Cpu cpu;
  std::set<std::pair<std::string, std::string>> cores;  // (socket, core)
  std::string socket, flags;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = trimmed(std::string_view(line).substr(0, colon));
    const std::string value(trimmed(std::string_view(line).substr(colon + 1)));
    if (key == "processor") ++cpu.logical_cores;
    if (key == "model name" && cpu.model.empty()) cpu.model = value;
    if (key == "physical id") socket = value;
    if (key == "core id") cores.emplace(socket, value);
    if ((key == "flags" || key == "Features") && flags.empty()) flags = value;
  }
  cpu.physical_cores = cores.empty() ? cpu.logical_cores : static_cast<int>(cores.size());
  const std::vector<std::string> present = split(flags, ' ');
  for (const char* name : kKernelSets) {
    if (contains(present, name)) cpu.instruction_sets.emplace_back(name);
  }
#if defined(__x86_64__)
  for (const char* name : {"sse4_2", "f16c", "bmi2", "fma", "avx2"}) {
    cpu.is_new_enough = cpu.is_new_enough && cpu.has(name);
  }
#endif
  return cpu;
}

Machine this_machine() {
  Machine machine;
  machine.system = operating_system();
  struct utsname name {};
  if (::uname(&name) == 0) {
    machine.kernel = name.release;
    machine.architecture = name.machine;
  }
  machine.cpu = parse_cpuinfo(read_stream("/proc/cpuinfo"));
  machine.usable_cores = usable_cores(machine.cpu.logical_cores);
  machine.memory_bytes = usable_memory();
  machine.nvidia = nvidia_driver();
  machine.mpirun = find_program("mpirun");
  machine.libmpi = find_library({"libmpi.so.40", "libmpi.so.12", "libmpi.so"});
  machine.libnccl = find_library({"libnccl.so.2"});
  return machine;
}

std::optional<GpuSpecs> specs_of(const Gpu& gpu) {
  auto specs = gpu_specs(gpu.name, gpu.compute_capability);
  const bool slice = gpu.name.find(" MIG ") != std::string::npos;
  if (!specs && !slice) specs = estimate_specs(gpu.compute_capability, gpu.clocks);
  return specs;
}

std::optional<GpuSpecs> specs_of(const Machine& machine, Device device) {
  const auto index = static_cast<std::size_t>(device.index);
  if (device.is_host() || index >= machine.nvidia.gpus.size()) return std::nullopt;
  return specs_of(machine.nvidia.gpus[index]);
}

Json to_json(const Machine& machine) {
  Json gpus = Json::array();
  for (const Gpu& gpu : machine.nvidia.gpus) {
    gpus.push_back({{"name", gpu.name},
                    {"compute_capability", gpu.compute_capability},
                    {"multiprocessors", gpu.clocks.multiprocessors},
                    {"memory_bytes", gpu.memory_bytes},
                    {"specs", specs_json(specs_of(gpu))}});
  }
  return {{"system", machine.system},
          {"kernel", machine.kernel},
          {"architecture", machine.architecture},
          {"cpu", machine.cpu.model},
          {"logical_cores", machine.cpu.logical_cores},
          {"physical_cores", machine.cpu.physical_cores},
          {"usable_cores", machine.usable_cores},
          {"instruction_sets", machine.cpu.instruction_sets},
          {"memory_bytes", machine.memory_bytes},
          {"nvidia_driver", machine.nvidia.version},
          {"cuda_version", machine.nvidia.cuda_version},
          {"gpus", gpus},
          {"mpirun", machine.mpirun},
          {"libmpi", machine.libmpi},
          {"libnccl", machine.libnccl}};
}

std::string this_boot() {
  return std::string(trimmed(read_stream("/proc/sys/kernel/random/boot_id")));
}

DeviceMemory memory_of(Device device) {
  if (!device.is_host()) {
    DeviceMemory memory;
    cuda::memory(device.index, memory.total, memory.free);
    return memory;
  }
  std::ifstream lines("/proc/meminfo");
  DeviceMemory memory{usable_memory(), 0};
  for (std::string name, unit; lines >> name >> memory.free && std::getline(lines, unit);)
    if (name == "MemAvailable:") break;
  memory.free *= 1024;
  return memory;
}

std::int64_t peak_rss_mib() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

}  // namespace hstu
