#include "hstu/device/gpu_specs.h"

#include <cctype>

#include "hstu/base/text.h"

namespace hstu {
namespace {

// TFLOP/s, GB/s of the memory and of the link each way, MiB, GiB and multiprocessors.
struct Row {
  std::string_view name, compute_capability;
  double bf16, fp16, tf32, fp32, fp8, bandwidth, link;
  std::int64_t l2, memory;
  int multiprocessors;
};

// Sources: NVIDIA's data sheets and architecture papers of Ampere (GA100, GA102), Ada, Hopper and Blackwell;
// L2 sizes as the driver reports them. Half of a rate that a data sheet gives "with sparsity". GeForce cards
// sum fp16 products in fp32 at half of their rate for sums in fp16; the former is the one that counts.
// clang-format off
constexpr Row kRows[] = {
    //  name                                              capability   bf16   fp16   tf32   fp32    fp8    GB/s  link  L2   GiB   SMs
    {"NVIDIA A100-PCIE-40GB",                                 "8.0",    312,   312,   156,  19.5,     0,   1555,    32,  40,   40,  108},
    {"NVIDIA A100-SXM4-40GB",                                 "8.0",    312,   312,   156,  19.5,     0,   1555,   300,  40,   40,  108},
    {"NVIDIA A100 80GB PCIe",                                 "8.0",    312,   312,   156,  19.5,     0,   1935,    32,  40,   80,  108},
    {"NVIDIA A100-SXM4-80GB",                                 "8.0",    312,   312,   156,  19.5,     0,   2039,   300,  40,   80,  108},
    {"NVIDIA A30",                                            "8.0",    165,   165,    82,  10.3,     0,    933,    32,  24,   24,   56},
    {"NVIDIA A10",                                            "8.6",    125,   125,  62.5,  31.2,     0,    600,    32,   6,   24,   72},
    {"NVIDIA A10G",                                           "8.6",     70,    70,    35,    35,     0,    600,    32,   6,   24,   80},
    {"NVIDIA GeForce RTX 3090",                               "8.6",   71.2,  71.2,  35.6,  35.6,     0,    936,    32,   6,   24,   82},
    {"NVIDIA GeForce RTX 4090",                               "8.9",  165.2, 165.2,  82.6,  82.6, 330.3,   1008,    32,  72,   24,  128},
    {"NVIDIA L4",                                             "8.9",    121,   121,    60,  30.3, 242.5,    300,    32,  48,   24,   58},
    {"NVIDIA L40",                                            "8.9",    181,   181,  90.5,  90.5,   362,    864,    32,  96,   48,  142},
    {"NVIDIA L40S",                                           "8.9",  362.1, 362.1,   183,  91.6,   733,    864,    32,  96,   48,  142},
    {"NVIDIA H100 80GB HBM3",                                 "9.0",  989.4, 989.4, 494.7,  66.9,  1979,   3352,   450,  50,   80,  132},
    {"NVIDIA H100 PCIe",                                      "9.0",  756.5, 756.5,   378,  51.2,  1513,   2039,    64,  50,   80,  114},
    {"NVIDIA H100 NVL",                                       "9.0",  835.5, 835.5, 417.5,    60,  1671,   3938,   300,  60,   94,  132},
    {"NVIDIA H200",                                           "9.0",  989.4, 989.4, 494.7,  66.9,  1979,   4800,   450,  60,  141,  132},
    {"NVIDIA H200 NVL",                                       "9.0",  835.5, 835.5, 417.5,    60,  1671,   4800,   450,  60,  141,  132},
    {"NVIDIA H20",                                            "9.0",    148,   148,    74,    44,   296,   4000,   450,  60,   96,   78},
    {"NVIDIA GH200 120GB",                                    "9.0",  989.4, 989.4, 494.7,  66.9,  1979,   4000,   450,  60,   96,  132},
    {"NVIDIA GH200 480GB",                                    "9.0",  989.4, 989.4, 494.7,  66.9,  1979,   4000,   450,  60,   96,  132},
    {"NVIDIA GH200 144G HBM3e",                               "9.0",  989.4, 989.4, 494.7,  66.9,  1979,   4900,   450,  60,  144,  132},
    {"NVIDIA B200",                                          "10.0",   2250,  2250,  1125,    75,  4500,   7700,   900, 126,  180,  148},
    {"NVIDIA GB200",                                         "10.0",   2500,  2500,  1250,    80,  5000,   8000,   900, 126,  186,  152},
    {"NVIDIA B300 SXM6 AC",                                  "10.3",   2250,  2250,  1125,    75,  4500,   8000,   900, 126,  270,  148},
    {"NVIDIA GeForce RTX 5090",                              "12.0",  209.5, 209.5, 104.8, 104.8,   419,   1792,    64,  96,   32,  170},
    {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition",    "12.0",  503.8, 503.8, 251.9,   126,  1008,   1792,    64, 128,   96,  188},
};
// clang-format on

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// Whether `name` contains `part`, and no letter or digit is beside it there.
bool has_words(std::string_view name, std::string_view part) {
  const auto inside = [&](std::size_t at) {
    return at < name.size() && std::isalnum(static_cast<unsigned char>(name[at])) != 0;
  };
  const std::size_t at = name.find(part);
  return at != std::string_view::npos && !inside(at - 1) && !inside(at + part.size());
}

const Row* find_row(std::string_view part_of_name) {
  const std::string part = lower(part_of_name);
  const Row* containing = nullptr;
  for (const Row& row : kRows) {
    const std::string name = lower(row.name);
    if (has_words(name, part)) return &row;
    if (containing == nullptr && name.find(part) != std::string::npos) containing = &row;
  }
  return containing;
}

// FLOPs of one multiprocessor in one clock.
struct Generation {
  std::string_view compute_capability;
  double bf16, fp32;  // dense products on tensor cores, and outside
  bool has_fp8;
};

// From the rows above: rate / (multiprocessors x boost clock). GeForce cards reach half of the first rate
// of 8.6 and 8.9 with sums in fp32.
constexpr Generation kGenerations[] = {
    {"8.0", 2048, 128, false}, {"8.6", 1024, 256, false}, {"8.9", 1024, 256, true}, {"9.0", 4096, 256, true},
    {"10.0", 8192, 256, true}, {"10.3", 8192, 256, true}, {"12.0", 1024, 256, true}};

}  // namespace

std::optional<GpuModel> find_gpu(std::string_view part_of_name) {
  const Row* row = find_row(part_of_name);
  if (row == nullptr) return std::nullopt;
  const std::size_t dot = row->compute_capability.find('.');
  return GpuModel{.name = row->name,
                  .major = *parse_number<int>(row->compute_capability.substr(0, dot)),
                  .minor = *parse_number<int>(row->compute_capability.substr(dot + 1)),
                  .multiprocessors = row->multiprocessors,
                  .memory_bytes = row->memory << 30};
}

std::string gpu_names() {
  std::string names;
  for (const Row& row : kRows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::optional<GpuSpecs> gpu_specs(std::string_view name, std::string_view compute_capability) {
  for (const Row& row : kRows) {
    if (row.name != name || row.compute_capability != compute_capability) continue;
    return GpuSpecs{.bf16 = row.bf16 * 1e12,
                    .fp16 = row.fp16 * 1e12,
                    .tf32 = row.tf32 * 1e12,
                    .fp32 = row.fp32 * 1e12,
                    .fp8 = row.fp8 * 1e12,
                    .memory_bandwidth = row.bandwidth * 1e9,
                    .link_bandwidth = row.link * 1e9,
                    .l2_bytes = row.l2 << 20};
  }
  return std::nullopt;
}

std::optional<GpuSpecs> estimate_specs(std::string_view compute_capability, const GpuClocks& clocks) {
  if (clocks.multiprocessors == 0 || clocks.clock == 0) return std::nullopt;
  for (const Generation& generation : kGenerations) {
    if (generation.compute_capability != compute_capability) continue;
    const double rate = clocks.multiprocessors * clocks.clock;
    const double bf16 = generation.bf16 * rate;
    constexpr double kPcieBandwidth = 32e9;
    return GpuSpecs{.bf16 = bf16,
                    .fp16 = bf16,
                    .tf32 = bf16 / 2,
                    .fp32 = generation.fp32 * rate,
                    .fp8 = generation.has_fp8 ? 2 * bf16 : 0,
                    .memory_bandwidth = 2 * clocks.memory_clock * clocks.memory_bus_bits / 8,  // two edges
                    .link_bandwidth = kPcieBandwidth,
                    .l2_bytes = clocks.l2_bytes,
                    .estimated = true};
  }
  return std::nullopt;
}

}  // namespace hstu
