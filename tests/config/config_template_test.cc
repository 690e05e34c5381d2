#include "hstu/config/config_template.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hstu {
namespace {

using ::testing::HasSubstr;

struct TemplateFeature {
  std::string name;
  std::int64_t rows = 0;
};
void describe(ConfigFields& f, TemplateFeature& o) {
  f.field("name", o.name, "of the table", rule::required());
  f.field("rows", o.rows, "of the table", rule::at_least(0));
}

struct TemplateData {
  Path path = "dataset";
  std::int64_t length = 256;
  std::vector<TemplateFeature> features;
};
void describe(ConfigFields& f, TemplateData& o) {
  f.field("path", o.path, "folder", rule::required());
  f.field("length", o.length, "events of a history", rule::between(1, 1000));
  f.sections("features", o.features, "ids with embeddings");
}

struct TemplateOptions {
  std::int64_t seed = 1;
  TemplateData data;
};
void describe(ConfigFields& f, TemplateOptions& o) {
  f.field("seed", o.seed, "of everything");
  f.section("data", o.data, "the samples");
}

// The lines that are keys behind "#", made keys.
std::string uncommented(const std::string& text) {
  std::istringstream lines(text);
  std::string all, line;
  while (std::getline(lines, line))
    all += (line.starts_with("#") && line[1] != ' ' ? line.substr(1) : line) + "\n";
  return all;
}

TEST(ConfigTemplate, IsTheDefaultsAndExplainsThem) {
  const std::string text = config_template(TemplateOptions());
  EXPECT_EQ(to_toml(parse_config<TemplateOptions>(text, "template")), to_toml(TemplateOptions()));
  EXPECT_THAT(text, HasSubstr("\n# events of a history (in [1, 1000])\n#length = 256\n"));
  EXPECT_THAT(text, HasSubstr("\npath = \"dataset\"\n"));
  EXPECT_THAT(text, HasSubstr("\n#[[data.features]]\n"));
}

TEST(ConfigTemplate, EveryKeyCanBeUncommented) {
  const TemplateOptions all =
      parse_config<TemplateOptions>(uncommented(config_template(TemplateOptions())), "template");
  EXPECT_EQ(all.data.features.size(), 1u);
  EXPECT_EQ(all.seed, 1);
}

TEST(ConfigTemplate, CommentsAreShortLines) {
  const std::string text =
      toml_comment("word " + std::string(200, 'x') + " " + std::string(90, 'y') + " end");
  EXPECT_EQ(text, "# word\n# " + std::string(200, 'x') + "\n# " + std::string(90, 'y') + " end\n");
}

}  // namespace
}  // namespace hstu
