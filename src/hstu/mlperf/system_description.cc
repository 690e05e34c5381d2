#include "hstu/mlperf/system_description.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/text.h"
#include "hstu/base/version.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;

// Files under /proc and /sys state no size. "" if there is none, or none that can be read.
std::string text_of(const Path& file) {
  std::ifstream stream(file);
  std::string text;
  std::getline(stream, text, '\0');
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::vector<Path> entries(const Path& folder) {
  std::vector<Path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

// The distinct values of a field of /proc/cpuinfo.
std::set<std::string> cpu_values(const std::string& field) {
  std::set<std::string> values;
  for (const std::string& line : split(text_of("/proc/cpuinfo"), '\n')) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with(field) && colon != std::string::npos) values.insert(line.substr(colon + 2));
  }
  return values;
}

std::string cpu_frequency() {
  const std::string khz = text_of("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  if (!khz.empty()) return fmt::format("{:.2f} GHz", std::stod(khz) / 1e6);
  const auto mhz = cpu_values("cpu MHz");
  return mhz.empty() ? "" : fmt::format("{:.2f} GHz", std::stod(*mhz.rbegin()) / 1e3);
}

std::string cpu_caches() {
  std::vector<std::string> caches;
  for (const Path& cache : entries("/sys/devices/system/cpu/cpu0/cache")) {
    const std::string level = text_of(cache / "level"), size = text_of(cache / "size");
    if (!level.empty()) caches.push_back(fmt::format("L{} {} {}", level, text_of(cache / "type"), size));
  }
  return fmt::format("{}", fmt::join(caches, "; "));
}

struct Storage {
  std::string type;
  double terabytes = 0;
};
Storage storage() {
  Storage found;
  std::set<std::string> types;
  for (const Path& disk : entries("/sys/block")) {
    const std::string name = disk.filename(), sectors = text_of(disk / "size");
    if (!fs::exists(disk / "device") || sectors.empty()) continue;
    found.terabytes += std::stod(sectors) * 512 / 1e12;
    types.insert(name.starts_with("nvme")                    ? "NVMe SSD"
                 : text_of(disk / "queue/rotational") == "1" ? "disk"
                                                             : "SSD");
  }
  found.type = fmt::format("{}", fmt::join(types, ", "));
  return found;
}

std::string networking() {
  std::vector<std::string> links;
  for (const Path& link : entries("/sys/class/net")) {
    const std::string speed = text_of(link / "speed");
    if (!speed.empty() && speed != "-1")
      links.push_back(fmt::format("{} {} Mbit/s", link.filename().string(), speed));
  }
  return fmt::format("{}", fmt::join(links, ", "));
}

std::string gib(std::int64_t bytes) {
  return fmt::format("{} GiB", bytes >> 30);
}

}  // namespace

Json system_description(const Machine& machine, const SystemWords& words) {
  const std::vector<Gpu>& gpus = machine.nvidia.gpus;
  const auto sockets = std::max<std::size_t>(1, cpu_values("physical id").size());
  const Storage disks = storage();
  const auto of_sockets = [&](int cores) { return std::to_string(cores / static_cast<int>(sockets)); };
  return {
      {"submitter", words.organization},
      {"division", word_of(kSubmissionDivisions, words.division)},
      {"status", words.status},
      {"system_name", words.name},
      {"number_of_nodes", std::to_string(words.nodes)},
      {"host_processors_per_node", std::to_string(sockets)},
      {"host_processor_model_name", machine.cpu.model},
      {"host_processor_core_count", of_sockets(machine.cpu.physical_cores)},
      {"host_processor_vcpu_count", of_sockets(machine.cpu.logical_cores)},
      {"host_processor_frequency", cpu_frequency()},
      {"host_processor_caches", cpu_caches()},
      {"host_processor_interconnect", ""},
      {"host_memory_capacity", gib(machine.memory_bytes)},
      {"host_storage_type", disks.type},
      {"host_storage_capacity", fmt::format("{:.2f} TB", disks.terabytes)},
      {"host_networking", networking()},
      {"host_networking_topology", ""},
      {"host_memory_configuration", ""},
      {"accelerators_per_node", std::to_string(gpus.size())},
      {"accelerator_model_name", gpus.empty() ? "" : gpus.front().name},
      {"accelerator_host_interconnect", ""},
      {"accelerator_frequency", ""},
      {"accelerator_on-chip_memories", ""},
      {"accelerator_memory_configuration", ""},
      {"accelerator_memory_capacity", gpus.empty() ? "" : gib(gpus.front().memory_bytes)},
      {"accelerator_interconnect", ""},
      {"accelerator_interconnect_topology", ""},
      {"cooling", ""},
      {"hw_notes", ""},
      {"framework", "hstu.cpp " + version()},
      {"other_software_stack",
       fmt::format("Linux {}{}", machine.kernel,
                   machine.nvidia.version ? ", NVIDIA driver " + *machine.nvidia.version : std::string())},
      {"operating_system", machine.system},
      {"sw_notes", ""}};
}

}  // namespace hstu
