#include "hstu/starting/starting_config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/text.h"
#include "hstu/config/config.h"
#include "hstu/config/config_template.h"
#include "hstu/kinds/kinds.h"
#include "hstu/metrics/metric_spec.h"
#include "hstu/starting/next_events_config.h"

namespace hstu {
namespace {

// Sizes that suit a number of samples, as in the project's own configurations.
struct Scale {
  std::int64_t samples;  // up to so many
  std::int64_t dim, layers, heads, hidden, longest_history, batch, epochs;
  double input_dropout, evaluate_every;
  const char* why;
};
constexpr Scale kScales[] = {
    {500'000, 64, 2, 2, 128, 128, 64, 5, 0.2, 0.5,
     "A small dataset: a narrow model with dropout, several epochs, each half of one evaluated."},
    {20'000'000, 128, 3, 4, 256, 256, 256, 2, 0.1, 0.25,
     "A medium dataset: two epochs, for a GPU. A CPU takes days: begin there with the sizes and the number "
     "of steps of docs/own-data.md."},
    {std::numeric_limits<std::int64_t>::max(), 256, 4, 4, 512, 512, 1024, 1, 0.1, 0.1,
     "A large dataset: one epoch, for a GPU; try it first with training.max_steps."}};

constexpr std::int64_t kDay = 86'400;
constexpr double kMostEvaluated = 200'000;  // samples of an evaluation, about
constexpr std::string_view kBestOfLists = "ndcg@10";
constexpr double kMostRanked = 10'000;  // the same, of lists with a hundred negatives
constexpr std::size_t kMostAttributes = 8;
// Of contexts of texts: features unless they explain so much of the label, or have so many texts.
constexpr double kTellsLabel = 0.5;
constexpr std::int64_t kMostTexts = 100'000, kFewestOfText = 10;
constexpr int kMostContexts = 8;

std::int64_t power_of_two(std::int64_t least) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, least))));
}

// Two digits, so that a person can read it.
double rounded(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::stod(fmt::format("{:.2g}", std::round(value / unit) * unit));
}

class StartingConfig {
 public:
  StartingConfig(const DatasetProfile& profile, const Kind& kind)
      : p_(profile),
        kind_(kind),
        scale_(*std::find_if(std::begin(kScales), std::end(kScales),
                             [&](const Scale& s) { return profile.samples <= s.samples; })) {
    const std::int64_t span = p_.manifest.time.max - p_.manifest.time.min;
    by_users_ = span == 0;
    windows_ = scale_.epochs == 1 && span >= 7 * kDay;
    history_ = std::clamp<std::int64_t>(power_of_two(p_.long_events), 16, scale_.longest_history);
    const EventCounts& counts = p_.manifest.counts;
    one_class_ = counts.positives == 0 || counts.positives == counts.rankable;
    only_positives_ = counts.positives > 0 && counts.positives == counts.rankable &&
                      find_metric(kind_.metrics, kBestOfLists) != nullptr;
    const double most = only_positives_ ? kMostRanked : kMostEvaluated;
    held_out_ = rounded(std::min(0.1, most / static_cast<double>(p_.samples)));
    strides_ = kind_.predicts_histories && !only_positives_;
    const std::int64_t users = p_.manifest.counts.users,  // each of whom has a sample at least
        samples = strides_ ? std::max(users, p_.samples / (history_ + 1)) : p_.samples;
    const double training = static_cast<double>(samples) * (1 - held_out_);
    batch_ = std::clamp<std::int64_t>(power_of_two(std::llround(training / 40)), 4, scale_.batch);
    steps_ = scale_.epochs *
             std::max<std::int64_t>(1, std::llround(std::ceil(training / static_cast<double>(batch_))));
  }

  std::string text() {
    head();
    data();
    features();
    model();
    training();
    evaluation();
    continuing();
    return text_;
  }

 private:
  void comment(const std::string& words) { text_ += toml_comment(words); }
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  void head() {
    const EventCounts& counts = p_.manifest.counts;
    comment(fmt::format(
        "A configuration to start from, made for the dataset {}: {} events of {} users and {} "
        "items, {} to rank, {:.3g} % of them {}. A user has {} events in the median; nine of "
        "ten have at most {}.",
        toml_quoted(p_.manifest.name), with_separators(counts.events), with_separators(counts.users),
        with_separators(counts.items), with_separators(counts.rankable),
        100.0 * static_cast<double>(counts.positives) /
            static_cast<double>(std::max<std::int64_t>(1, counts.rankable)),
        p_.manifest.label, with_separators(p_.median_events), with_separators(p_.long_events)));
    if (p_.manifest.split && p_.manifest.split->test_end > p_.manifest.split->test_start) {
      comment(
          "The dataset's own test interval is not part of its columns; what is held out below comes from the "
          "interval for training.");
    }
    comment("hstu config --template lists every other key; hstu plan prints the memory that this one needs.");
    line("seed = 1\n");
  }

  void data() {
    line("[data]\npath = {}", toml_quoted(std::filesystem::absolute(p_.path).lexically_normal().string()));
    comment(
        fmt::format("Longer histories know more and cost more. This one is as long as nine of ten users have "
                    "events, and at most {} for a dataset of this size.",
                    scale_.longest_history));
    line("history_length = {}", history_);
    comment("The latest events of any kind; \"interleaved\" gives every pool the same share.");
    line("history_strategy = \"last_n\"");
    comment("An event is a sample when its user has so many earlier ones.");
    line("min_history = {}", p_.min_history);
    if (strides_) {
      comment("The events of a history are predicted too: with this stride each event once in an epoch.");
      line("anchor_stride = {}", history_ + 1);
    }
    if (windows_) {
      comment("Day by day in the order of time, shuffled inside each day: the latest days teach last.");
      line("window_seconds = {}", kDay);
    } else {
      comment("One window, shuffled as a whole.");
      line("window_seconds = 0");
    }
    line("shuffle_fraction = 1.0");
    negatives();
    line("");
  }

  void negatives() {
    if (!only_positives_) return;
    comment(
        "The log has positives alone. Beside each, items are drawn, popular ones more often: the model "
        "learns to rank the positive above them.");
    const std::int64_t items = p_.manifest.counts.items;
    const bool unseen = items > 4 * p_.long_events;
    if (!unseen) comment("Users come back to what they have had, so that it is drawn too.");
    line("negatives = {{ per_positive = {}, from = \"popularity\", exclude_seen = {} }}",
         std::clamp<std::int64_t>(items / 4, 1, 4), unseen);
  }

  void features() {
    std::vector<std::string> attributes;
    for (const AttributeProfile& attribute : p_.attributes) {
      if (!attribute.unlike.empty())
        comment(fmt::format("{} is no feature: its texts are {}.", attribute.name, attribute.unlike));
      else if (kind_.reads_attributes && attributes.size() < kMostAttributes)
        attributes.push_back(attribute.name);
    }
    if (!attributes.empty()) comment("Every attribute of an item is an embedding added to the item's own.");
    for (const std::string& name : attributes)
      line("[[features.attributes]]\nname = {}\n", toml_quoted(name));
    const bool known = p_.known_users >= 0.5 && !by_users_;
    const std::string share =
        fmt::format("{:.0f} % of the latest samples are of users with earlier events to learn from",
                    100 * p_.known_users);
    if (!known) {
      comment(fmt::format("No feature identifies the user: {}. The history says who a user is.",
                          by_users_ ? "held-out users have no training event" : share));
      line("");
    } else {
      comment(fmt::format("The user has a row of its own: {}.", share));
      user_feature();
      const bool with_attribute = !attributes.empty() && !only_positives_;
      if (with_attribute) {
        comment("What this user thinks of this attribute; rows are hashed, about two for each event.");
        context({"user", attributes.front()}, 2 * p_.manifest.counts.events);
      }
      if (only_positives_ && !attributes.empty()) {
        comment(
            "No feature of the user and an attribute: the negatives of a sample share its history, which "
            "is several times faster, as long as no contextual feature is made of the item.");
      }
      tokens_ = with_attribute ? 2 : 1;
    }
    std::vector<std::string> numbers = p_.manifest.context;
    for (const ContextProfile& context : p_.contexts) {
      std::erase(numbers, context.name);
      text_context(context);
    }
    if (!numbers.empty()) {
      comment(fmt::format(
          "The log also has {}. A column that is known before the user acts can be a feature, for "
          "example with keys = [\"user\", \"{}\"]; one that the action decides would tell the label.",
          fmt::join(numbers, ", "), numbers.front()));
      line("");
    }
  }

  void text_context(const ContextProfile& context) {
    const std::string share =
        fmt::format("{:.0f} % of what there is to know of the label", 100 * context.explained);
    std::string against;
    if (strides_) {
      against = "it would be that of a sample's last event, and earlier ones are predicted too";
    } else if (!context.unlike.empty()) {
      against = fmt::format("its {} different texts are {}", with_separators(context.texts), context.unlike);
    } else if (context.explained > kTellsLabel) {
      against = fmt::format("it alone says {}, as a column does that the action decides", share);
    } else if (context.texts > std::min(kMostTexts, p_.samples / kFewestOfText)) {
      against = fmt::format("{} different texts are too many to learn each", with_separators(context.texts));
    } else if (context.texts < 2) {
      against = "it is the same everywhere";
    } else if (++contexts_ > kMostContexts) {
      against = fmt::format("{} others are features already", kMostContexts);
    }
    if (against.empty()) {
      ++tokens_;
      comment(fmt::format("{} different texts, which say {}; they must be known before the user acts.",
                          with_separators(context.texts), share));
    } else {
      comment(fmt::format("No feature: {}.", against));
    }
    line("{0}[[features.context]]\n{0}name = {1}\n{0}keys = [{1}]\n{0}hashed = false\n",
         against.empty() ? "" : "#", toml_quoted(context.name));
  }

  void user_feature() {
    if (p_.min_user_id >= 0)  // also of names hashed to 63 bits: a table has rows only for ids that occur
      line("[[features.context]]\nname = \"user\"\nkeys = [\"user\"]\nhashed = false\n");
    else
      context({"user"}, 4 * p_.manifest.counts.users);
  }

  void context(const std::vector<std::string>& keys, std::int64_t rows) {
    std::vector<std::string> quoted;
    quoted.reserve(keys.size());
    for (const std::string& key : keys) quoted.push_back(toml_quoted(key));
    constexpr std::int64_t kFewest = 1024, kMost = 100'000'000;
    line("[[features.context]]\nname = {}\nkeys = [{}]\nrows = {}\n",
         toml_quoted(fmt::format("{}", fmt::join(keys, "_x_"))), fmt::join(quoted, ", "),
         std::clamp(power_of_two(rows), kFewest, kMost));
  }

  void model() {
    comment(scale_.why);
    other_kind();
    line("[model]");
    if (kind_.name != kinds().front().name) line("kind = {}", toml_quoted(kind_.name));
    line("{}", kind_.propose({.dim = scale_.dim,
                              .layers = scale_.layers,
                              .heads = scale_.heads,
                              .hidden = scale_.hidden,
                              .dropout = scale_.input_dropout,
                              .history = history_,
                              .contextual_tokens = tokens_,
                              .actions = actions(),
                              .only_positives = only_positives_}));
  }

  // The label first.
  std::vector<std::string> actions() const {
    std::vector<std::string> names{p_.manifest.label};
    for (const ActionBit& action : p_.manifest.actions)
      if (action.name != p_.manifest.label) names.push_back(action.name);
    return names;
  }

  // Says which kind learns several actions at once, if this one does not.
  void other_kind() {
    const auto other = std::ranges::find_if(kinds(), [](const Kind& k) { return k.predicts_histories; });
    const std::vector<std::string> names = actions();
    if (kind_.predicts_histories || only_positives_ || names.size() < 2 || other == kinds().end()) return;
    comment(fmt::format("To learn several of {} at once: hstu config --template --kind {} --for DATASET.",
                        fmt::join(names, ", "), other->name));
  }

  void training() {
    line("[training]\nbatch_size = {}\nepochs = {}", batch_, scale_.epochs);
    comment(fmt::format("About {} steps in all; for a first look: max_steps = {}.", with_separators(steps_),
                        std::clamp<std::int64_t>(steps_ / 10, 1, 200)));
    line("max_steps = 0\n");
    comment(
        "The first thing to vary: hstu sweep FILE --vary dense_optimizer.learning_rate=3e-4,1e-3,3e-3 ...");
    line("[dense_optimizer]\nlearning_rate = 1e-3\n\n[sparse_optimizer]");
    if (only_positives_)
      comment(
          "Popular items are as frequent among negatives: items teach each other, which needs larger steps.");
    line("learning_rate = {}\n", only_positives_ ? 0.1 : 0.02);
    comment("A twentieth of the steps to warm up, then half a cosine to nearly nothing.");
    line("[schedule]\nwarmup_steps = {}\ndecay = \"cosine\"\ndecay_steps = {}\nfinal_fraction = 0.02\n",
         std::clamp<std::int64_t>(steps_ / 20, 1, 2000), std::max<std::int64_t>(steps_, 2));
  }

  void evaluation() {
    line("[evaluation]");
    if (by_users_) {
      comment("All events have one time, so users are held out, a tenth of them.");
      line("train_user_fraction = 0.9");
    } else {
      comment(fmt::format("The latest samples, which no step trains on; about {} at most: it stays short.",
                          only_positives_ ? "10,000" : "200,000"));
      line("holdout_fraction = {}", held_out_);
    }
    line("batch_size = 256");
    comment(
        "In epochs. The run stops when four evaluations in a row have not improved, and keeps the best "
        "checkpoint: hstu eval RUN --checkpoint best.");
    line("every_data_fraction = {}\npatience = 4", scale_.evaluate_every);
    lists();
    best();
    line("[metrics]\nevery_steps = {}", std::clamp<std::int64_t>(steps_ / 20, 1, 50));
  }

  void lists() {
    if (only_positives_) {
      comment(
          "Each held-out sample is ranked among items that are drawn, the same in every evaluation; hit@10 "
          "says how often it is among the first ten. Popularity and co-occurrence are measured beside the "
          "model.");
      line("negatives = {}", std::clamp<std::int64_t>(p_.manifest.counts.items / 2, 1, 100));
      line("negatives_from = \"popularity\"\nranking_k = [1, 10]\n");
      return;
    }
    std::vector<std::string_view> titles;
    for (const MetricSpec& metric : kind_.metrics)
      if (metric.of_lists && metric.has_cutoff) titles.push_back(metric.title);
    if (!titles.empty()) {
      comment(fmt::format("{} of each user's held-out samples as a list:", fmt::join(titles, " and ")));
      line("#ranking_k = [1, 10]");
    }
    line("");
  }

  void best() {
    const MetricSpec& headline = kind_.metrics.front();
    const auto other = std::find_if(kind_.metrics.begin(), kind_.metrics.end(),
                                    [](const MetricSpec& metric) { return metric.of_one_class; });
    if (only_positives_) {
      line("[checkpoint]\nbest = \"{}\"\n", kBestOfLists);
      return;
    }
    const bool undefined = one_class_ && other != kind_.metrics.end();
    if (undefined) {
      comment(
          fmt::format("All samples have the same label, so {} is undefined: look at the label of the schema.",
                      headline.title));
    }
    line("[checkpoint]\nbest = \"{}\"\n", (undefined ? *other : headline).name);
  }

  void continuing() {
    if (by_users_) return;
    comment("When the events of the next day are there, the same model goes on (docs/daily.md):");
    line("#   hstu prepare csv --schema SCHEMA.toml --input NEXT_DAY --append DATASET");
    line("#   hstu train --resume RUN");
    line("#   hstu export tables RUN --since STEP --output CHANGES");
    comment(
        "The new samples are trained once, with the optimizers as they are. The cosine above has then ended: "
        "with [schedule] decay = \"none\" new days are learnt at the full rate. With [evaluation] "
        "next_window "
        "= true instead of a hold-out each new day is scored before it is trained (then no best, no "
        "patience).");
  }

  const DatasetProfile& p_;
  const Kind& kind_;
  const Scale& scale_;
  bool by_users_ = false, windows_ = false, one_class_ = false, only_positives_ = false, strides_ = false;
  std::int64_t history_ = 0, batch_ = 0, steps_ = 0, tokens_ = 0;
  int contexts_ = 0;  // of texts that are features
  double held_out_ = 0;
  std::string text_;
};

}  // namespace

std::string starting_config(const DatasetProfile& profile, const Kind& kind, const Path& codes) {
  if (kind.propose == nullptr) {
    fail_usage(
        "no configuration to start from is known for models of kind {}: hstu config --template --kind {} "
        "lists every key",
        kind.name, kind.name);
  }
  return kind.samples_are_users ? next_events_config(profile, kind, codes)
                                : StartingConfig(profile, kind).text();
}

}  // namespace hstu
