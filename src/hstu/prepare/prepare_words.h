// The arguments that all sources of events share, and what `hstu prepare SOURCE` does with them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/time_split.h"
#include "hstu/events/prepare_options.h"
#include "hstu/events/schema.h"
#include "hstu/objects/object_store.h"

namespace hstu {

// What is left out of a log, and the order of ties, where the user says it instead of the schema.
struct FilterWords {
  std::optional<std::int64_t> core, longest_user, shortest_user, seed;
  bool core_once = false;
  std::string duplicates, duplicates_of, ties;  // "": not said

  bool any() const;
  // Changes the keys of `schema` that the user named.
  void apply(Schema& schema) const;
};

// The arguments of the user; each subcommand uses some of them.
struct PrepareWords {
  std::string input, output, append, codes_from, schema, files_from, mappings;
  StoreOptions store;
  FilterWords filters;
  std::vector<std::string> suggest;
  std::string label;
  double positive_rating = 4;
  SplitRule split;
  AnchorRule anchors;
  std::string layout = "hstu";
  std::int64_t history_length = 4086;
  int threads = 0;
  std::uint64_t memory = std::uint64_t{2} << 30;
};

// Adds the subcommand `name` of `app` with all options that sources share but --input. `anchors`: the default
// rule of the index that is stored with the dataset.
CLI::App* add_source(CLI::App& app, PrepareWords& words, const AnchorRule& anchors, const char* name,
                     const char* description, const char* example);
// --input FOLDER, required, which may be one of an object store, and the options of the store.
CLI::Option* add_input_folder(CLI::App& command, PrepareWords& words);

// Does the work with words.input a local folder. Objects of a store are downloaded to OUTPUT.s3, which is
// removed after the work, and kept for the next call if the work fails.
void with_local_input(PrepareWords& words, const std::function<void()>& work);

// Sets threads and memory of this program as the user wants.
PrepareOptions prepare_options(const PrepareWords& words);

// Prepares or appends the log in words.input, or the files that the schema names, and prints what it came to.
void run_source(const PrepareWords& words, Schema schema);

}  // namespace hstu
