#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hstu/base/child_processes.h"
#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/file_lock.h"
#include "hstu/base/json.h"
#include "hstu/cli/commands.h"
#include "hstu/cli/followed_folder.h"
#include "hstu/cli/run_series.h"
#include "hstu/cli/stop_signals.h"
#include "hstu/dataset/manifest.h"
#include "hstu/run/folder.h"

namespace hstu {
namespace {

struct FollowWords {
  Path folder, schema, run;
  double every = 60, settle = 10;
  bool once = false, known = false;
  int threads = 0;
};

// One run that follows one folder, step by step; each can be repeated after a kill.
class Follower {
 public:
  explicit Follower(const FollowWords& words)
      : words_(words),
        run_(open_run_folder(words.run)),
        dataset_(read_run_options(run_).data.path),
        lock_(words.run / "follow.lock"),
        state_(read_follow_state(state_file())) {
    read_file(words.schema);  // or names it
    if (!lock_.held()) fail_usage("{}: another hstu follow is at work there", words.run.string());
    if (!words.known) return;
    if (std::filesystem::exists(state_file()))
      fail_usage("--known is for the first start: {} exists", state_file().string());
    state_.read = new_files(words_.folder, state_, 0);
    state_.save(state_file());
  }

  // Whether there was something new.
  bool step() {
    const bool added = add_files();
    if (!added && trained_ == dataset_id()) return false;
    train();
    return true;
  }

 private:
  Path state_file() const { return words_.run / "follow.json"; }
  Path log() const { return words_.run / "follow.log"; }
  std::string dataset_id() const { return read_manifest(dataset_).id; }

  bool add_files() {
    finish_reading();  // a killed command may have added them
    if (state_.reading.empty()) {
      state_.reading = new_files(words_.folder, state_, words_.settle);
      state_.before = dataset_id();
      if (state_.reading.empty()) return false;
      state_.save(state_file());
    }
    const Path input = words_.run / "follow.input";  // links to the new files alone
    std::filesystem::remove_all(input);
    std::filesystem::create_directory(input);
    for (const auto& [name, bytes] : state_.reading)
      std::filesystem::create_symlink(std::filesystem::absolute(words_.folder / name), input / name);
    run_command({"prepare", is_parquet(state_.reading.begin()->first) ? "parquet" : "csv", "--schema",
                 words_.schema.string(), "--input", input.string(), "--append", dataset_.string()});
    std::filesystem::remove_all(input);
    print({{"added", names_of(state_.reading)}, {"dataset", dataset_id()}});
    finish_reading();
    return true;
  }

  // An append changes the dataset at once or not at all.
  void finish_reading() {
    if (state_.reading.empty() || dataset_id() == state_.before) return;
    state_.read.merge(state_.reading);
    state_.reading.clear();
    state_.save(state_file());
  }

  void train() {
    const std::string id = dataset_id();
    run_command({"train", "--resume", words_.run.string()});
    trained_ = id;
    const Json summary = Json::parse(read_file(run_.summary()));
    print({{"trained", id}, {"step", summary.at("step")}});
  }

  // Ends this program as the command ended, unless it did what it should.
  void run_command(std::vector<std::string> words) const {
    if (words_.threads > 0) words.insert(words.end(), {"--threads", std::to_string(words_.threads)});
    const ChildCommand command{words, log()};
    int status = 0;
    const bool started = run_children(
        {&command, 1}, 1, [](std::size_t) {}, [&](std::size_t, int ended) { status = ended; });
    if (!started || status == kInterrupted) throw ExitStatus{kInterrupted};
    check(status == 0,
          "hstu {} failed with status {}: {}; its messages are in {}. The same command tries again",
          fmt::join(words, " "), status, last_line(log()), log().string());
  }

  static std::vector<std::string> names_of(const std::map<std::string, std::int64_t>& files) {
    std::vector<std::string> names;
    names.reserve(files.size());
    for (const auto& [name, bytes] : files) names.push_back(name);
    return names;
  }
  static void print(const Json& line) {
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }

  FollowWords words_;
  RunFolder run_;
  Path dataset_;
  FileLock lock_;
  FollowState state_;
  std::string trained_ = {};  // id of the dataset that the run has trained on, as far as this process knows
};

void follow(const FollowWords& words) {
  Follower follower(words);
  while (true) {
    if (follower.step()) continue;
    if (words.once) return;
    const std::atomic<bool>& stop = watch_stop_signals();
    for (const Clock::time_point looked = Clock::now(); seconds_since(looked) < words.every;) {
      if (stop) throw ExitStatus{kInterrupted};
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

}  // namespace

void add_follow_command(CLI::App& app) {
  auto words = std::make_shared<FollowWords>();
  CLI::App* const command =
      app.add_subcommand("follow", "Add the files of a growing folder to a run's dataset, and train on them");
  command->add_option("FOLDER", words->folder, "to which new Parquet or CSV files come")
      ->required()
      ->check(CLI::ExistingDirectory);
  command->add_option("--schema", words->schema, "what their columns mean, as for hstu prepare")->required();
  command->add_option("--run", words->run, "the run that goes on, with its dataset")
      ->required()
      ->type_name("RUN");
  command->add_option("--every", words->every, "look for new files so often")
      ->check(CLI::Range(0.05, 86'400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--settle", words->settle, "a file is complete when it is unchanged for so long")
      ->check(CLI::Range(0.0, 86'400.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_flag("--known", words->known,
                    "at the first start: the dataset has the files that are in FOLDER now");
  command->add_flag("--once", words->once, "end when nothing is new");
  command->add_option("--threads", words->threads, "of each command; 0: all cores")
      ->check(CLI::Range(0, kMostThreads));
  command->footer(
      "Does hstu prepare --append for new files and hstu train --resume RUN, until SIGTERM or SIGINT (exit "
      "status\n"
      "75). RUN/follow.json says which files the dataset has: whenever this is killed, the same command goes "
      "on,\n"
      "and no event is trained twice. Write files under a name that begins with '.' and rename them when "
      "they are\n"
      "complete. evaluation.next_window = true scores new windows before they are trained; "
      "checkpoint.publish\n"
      "publishes what was trained. Prints a JSON line for each step; RUN/follow.log has the commands' "
      "messages.\n"
      "Example:\n"
      "  hstu follow logs --schema shop.toml --run run");
  command->callback([words] { follow(*words); });
}

}  // namespace hstu
