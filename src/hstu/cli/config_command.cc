#include <memory>

#include "hstu/base/terminal.h"
#include "hstu/cli/commands.h"
#include "hstu/config/config_template.h"
#include "hstu/kinds/kinds.h"
#include "hstu/options/options.h"
#include "hstu/starting/starting_config.h"

namespace hstu {
namespace {

struct OptionsOfKind {
  const Kind& kind;
  std::unique_ptr<KindOptions> options;
};

void describe(ConfigFields& f, OptionsOfKind& o) {
  f.section("model", *o.options, fmt::format("with kind = \"{}\"", o.kind.name));
}

// The keys of the first kind are among those of a run's default options.
std::string reference() {
  std::string text = config_reference<RunOptions>();
  for (const Kind& kind : kinds().subspan(1)) {
    OptionsOfKind options{kind, kind.options()};
    ConfigReference page;
    describe(page, options);
    text += "\n" + page.text();
  }
  return text;
}

std::string full_template(const std::string& kind) {
  RunOptions options;
  options.data.path = "dataset";
  if (!kind.empty()) options.model.choose(kind);
  std::string text = config_template(options);
  if (&options.model.kind() != &kinds().front()) text.erase(text.find("#kind"), 1);
  return toml_comment(fmt::format(
             "Every key of a run. A key behind # has the value that it has without the line. The keys of "
             "[model] are those of kind = \"{}\"; hstu config lists the others.",
             options.model.kind().name)) +
         "\n" + text;
}

std::string template_for(const Path& dataset, const std::string& name, const Path& codes) {
  ModelSection model;
  if (!name.empty()) model.choose(name);
  const DatasetProfile profile = profile_dataset(dataset);
  const EventCounts& counts = profile.manifest.counts;
  if (counts.positives == 0) {
    print_note("WARNING: {} of {} events to rank are positive: a model can learn nothing from one class\n",
               counts.positives, counts.rankable);
  }
  return starting_config(profile, model.kind(), codes);
}

}  // namespace

void add_config_command(CLI::App& app) {
  struct Words {
    Path dataset, codes;
    std::string template_of, kind;
  };
  auto words = std::make_shared<Words>();
  CLI::App* const command =
      app.add_subcommand("config", "List every configuration key, or write a configuration to start from");
  CLI::Option* const wanted =
      command
          ->add_option(
              "--template", words->template_of,
              "print a TOML file with every key as a comment; behind it a kind of model, as by --kind")
          ->expected(0, 1)
          ->type_name("[KIND]");
  command
      ->add_option("--for", words->dataset,
                   "with --template: print a configuration that trains this dataset, with its reasons")
      ->needs(wanted);
  command
      ->add_option("--kind", words->kind,
                   "with --template: a kind of model, as model.kind; default: the first")
      ->needs(wanted);
  command
      ->add_option("--codes", words->codes,
                   "with --for and a kind of model that has codes: those of the items (docs/semantic-ids.md)")
      ->needs(wanted);
  command->footer(
      "Without --template, prints tables of all keys with their defaults and meanings.\n"
      "Examples:\n  hstu config | less\n"
      "  hstu config --template --for dataset > config.toml\n"
      "  hstu config --template retrieval --for dataset > config.toml\n"
      "  hstu train config.toml --output run");
  command->callback([words, wanted] {
    if (wanted->count() == 0) {
      fmt::print("{}", reference());
      return;
    }
    const std::string& kind = words->kind.empty() ? words->template_of : words->kind;
    fmt::print("{}", words->dataset.empty() ? full_template(kind)
                                            : template_for(words->dataset, kind, words->codes));
  });
}

}  // namespace hstu
