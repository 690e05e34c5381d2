// A suite: experiments that change keys of one base, trained one after another and compared with the first
// and with published figures (docs/benchmarks.md has the form of the file).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/comparison/planned_run.h"
#include "hstu/config/config.h"

namespace hstu {

struct SuiteData {
  std::string generate, prepare;  // the words behind "hstu generate" and "hstu prepare"; "": data.path is set
};

struct SuiteBase {
  Path config = {};  // beside the suite's file, or an installed one
  std::int64_t ranks = 0;
  std::int64_t published_gpus = 1;
  double scale = 0;
  std::vector<std::string> set = {};
  std::string profile = {};
  std::int64_t warmup_lines = 1;
  std::int64_t epoch_samples = 0;
  std::vector<std::string> left_out = {};  // of a resolved suite: experiments that need more ranks
};

struct SuiteExperiment {
  std::string name, about;
  std::int64_t ranks = 0;  // 0: the base's
  std::int64_t least_ranks = 1;
  std::vector<std::string> set;
};

// What others published of an experiment; 0: not.
struct PublishedFigures {
  std::string experiment, source, hardware;
  double tflops = 0, best_tflops = 0, mfu = 0, tokens_per_s = 0, speedup = 0;
};

struct Suite {
  std::string title, about;
  SuiteData data;
  SuiteBase base;
  std::vector<SuiteExperiment> experiments;
  std::vector<PublishedFigures> published;
};
void describe(ConfigFields& fields, Suite& suite);

// Of another file or another machine than the suite was written for.
struct SuiteWords {
  std::int64_t ranks = 0;             // > 0: of every experiment without ranks of its own
  double scale = 0;                   // > 0: in place of the suite's
  std::vector<std::string> set = {};  // on top of every experiment
};

// The suite of the file for a machine of `gpus` GPUs: ranks, scale and every {..} have their values, and each
// experiment has all keys that are set; those that need more ranks are left out. UsageError for what is no
// suite.
Suite resolve_suite(const Path& file, const SuiteWords& words, std::int64_t gpus);

// {32*ranks}, {50_000_000*scale}, {640/2}: products and quotients of numbers and these two names, rounded to
// a whole number of at least 1. Other braces stay as they are.
std::string with_sizes(const std::string& text, std::int64_t ranks, double scale);

// The runs of a resolved suite. `dataset`: what its data words make; "" where the suite has none. `only`:
// names of experiments; empty: all. UsageError for wrong keys, naming the experiment, and for an unknown
// name.
std::vector<PlannedRun> plan_suite(const Suite& suite, const Path& dataset,
                                   const std::vector<std::string>& only = {});

// A sentence about what is smaller than published, or left out; "": nothing.
std::string scale_text(const Suite& suite);

}  // namespace hstu
