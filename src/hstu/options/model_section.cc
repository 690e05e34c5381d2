#include "hstu/options/model_section.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/text.h"
#include "hstu/kinds/kinds.h"

namespace hstu {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.emplace_back(kind.name);
  return names;
}

}  // namespace

MetricSpecs ModelSection::metrics() const {
  return kind_->metrics;
}

ModelSection::ModelSection() : kind_(&kinds().front()), options_(kind_->options()) {}

ModelSection::ModelSection(const ModelSection& other)
    : kind_(other.kind_), options_(other.options_->clone()) {}

ModelSection& ModelSection::operator=(ModelSection other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(options_, other.options_);
  return *this;
}

void ModelSection::choose(std::string_view name) {
  if (name == kind_->name) return;
  const auto list = kinds();
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Kind& kind) { return kind.name == name; });
  if (found == list.end())
    fail_usage("there is no kind of model \"{}\"; the kinds are {}", name, fmt::join(names(), ", "));
  kind_ = &*found;
  options_ = kind_->options();
}

// The keys of other kinds are unknown keys.
void describe(ConfigFields& f, ModelSection& o) {
  std::string kind(o.kind().name), titles;
  for (const Kind& listed : kinds())
    titles += fmt::format("{}{}: {}", titles.empty() ? "" : "; ", listed.name, listed.title);
  f.field("kind", kind, titles + ". Each has keys of its own", {.words = names()});
  f.decides("kind", fmt::format("begin with hstu config --template --kind {} (and --for DATASET)", kind));
  o.choose(kind);
  o.options().describe(f);
}

}  // namespace hstu
