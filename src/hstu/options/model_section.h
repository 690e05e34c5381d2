// [model]: the kind of model decides which other keys the section has.
#pragma once

#include <memory>
#include <string_view>

#include "hstu/metrics/metric_spec.h"
#include "hstu/task/kind_options.h"

namespace hstu {

struct Kind;

class ModelSection {
 public:
  ModelSection();  // the first kind of the list, with its defaults
  ModelSection(const ModelSection& other);
  ModelSection(ModelSection&&) noexcept = default;
  ModelSection& operator=(ModelSection other) noexcept;
  ~ModelSection() = default;

  const Kind& kind() const { return *kind_; }
  MetricSpecs metrics() const;  // of the kind
  // Another kind, with its defaults. UsageError listing the names of the list for one that is not in it.
  void choose(std::string_view kind);

  KindOptions& options() { return *options_; }
  const KindOptions& options() const { return *options_; }

 private:
  const Kind* kind_;
  std::unique_ptr<KindOptions> options_;
};

void describe(ConfigFields& fields, ModelSection& section);

}  // namespace hstu
