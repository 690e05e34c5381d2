// Runs whose scores of requests are compared with those of their evaluation.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "command.h"
#include "hstu/base/npy.h"
#include "hstu/base/text.h"
#include "hstu/predict/csv_reader.h"
#include "hstu/predict/predict.h"
#include "training/run_fixture.h"

namespace hstu::testing {

// The first Python in PATH may be another than the distribution's, which has NumPy (deps/packages.txt).
inline std::string python_with_numpy() {
  for (const char* const python : {"python3", "/usr/bin/python3"})
    if (run_command(fmt::format("{} -c 'import numpy, tomllib'", python)).exit_status == 0) return python;
  return "";
}

class Predict : public RunTest {
 protected:
  using Columns = std::map<std::string, std::vector<std::string>>;

  static Columns read(const Path& file) {
    CsvReader rows{ByteSource(file)};
    Columns columns;
    for (const std::string& name : rows.columns()) columns[name];
    while (rows.next())
      for (std::size_t c = 0; c < rows.columns().size(); ++c)
        columns[rows.columns()[c]].emplace_back(rows.field(c));
    return columns;
  }
  static std::vector<float> floats(const std::vector<std::string>& texts) {
    std::vector<float> values;
    values.reserve(texts.size());
    for (const std::string& text : texts) values.push_back(parse_number<float>(text).value());
    return values;
  }

  // The second model, small.
  RankingGrConfig& use_ranking(std::int64_t positions, std::vector<std::string> labels) {
    RankingGrConfig& model = ranking_gr_of(options_);
    model.embedding_dim = model.dim = 8;
    model.heads = 2;
    model.head_dim = 4;
    model.positions = positions;
    model.head_hidden = {16};
    model.labels = std::move(labels);
    return model;
  }
  // Trains the run "run" for a few steps and writes the scores of its evaluation into the folder "scores".
  void train_and_evaluate() {
    options_.training.max_steps = 6;
    run("run");
    const RunFolder folder = open_run_folder(folder_ / "run");
    Experiment experiment(read_run_options(folder));
    load_run(Checkpoint(find_checkpoint(folder.checkpoints(), -1)), experiment);
    Evaluator evaluator(experiment);
    evaluator.run();
    evaluator.write_predictions(folder_ / "scores");
  }
  // The evaluated anchors as requests. No two events of a user have the same time.
  void write_anchors(const Path& file) const {
    const NpyColumn<std::int64_t> user(folder_ / "scores/user.npy"), item(folder_ / "scores/item.npy"),
        time(folder_ / "scores/time.npy");
    std::string text = "user,item,time\n";
    for (std::int64_t i = 0; i < user.size(); ++i)
      text += fmt::format("{},{},{}\n", user[i], item[i], time[i]);
    write_file(file, text);
  }
  void write_events(const Path& file) const {
    const Dataset dataset(folder_ / "dataset");
    std::string text = "uid,item,ms,action\n";
    for (std::int64_t p = dataset.events() - 1; p >= 0; --p) {  // in any order
      text += fmt::format("{},{},{},{}\n", dataset.user_ids()[static_cast<std::size_t>(dataset.user_at(p))],
                          dataset.item()[p], 1000 * dataset.time()[p] + 999,
                          (dataset.action()[static_cast<std::size_t>(p)] & 1) != 0 ? "positive" : "2");
    }
    write_file(file, text);
  }
  std::vector<float> evaluated(const char* file = "score.npy") const {
    const NpyColumn<float> scores(folder_ / "scores" / file);
    return {scores.values().begin(), scores.values().end()};
  }
  PredictOptions request(const std::string& name) const {
    return {.model = folder_ / "run", .requests = folder_ / "requests.csv", .output = folder_ / name};
  }
  Columns scored(const PredictOptions& options) {
    last_ = predict(options);
    return read(options.output);
  }

  PredictResult last_;
};

}  // namespace hstu::testing
