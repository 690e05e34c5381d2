#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hstu/base/child_processes.h"
#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/file_lock.h"
#include "hstu/base/json.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/cli/commands.h"
#include "hstu/cli/followed_folder.h"
#include "hstu/cli/run_series.h"
#include "hstu/cli/stop_signals.h"
#include "hstu/dataset/appended_before.h"
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
        folder_(words.folder, words.schema, words.settle),
        state_(read_follow_state(state_file())) {
    if (!lock_.held()) fail_usage("{}: another hstu follow is at work there", words.run.string());
    if (std::filesystem::exists(state_file())) return;
    if (words.known) {
      state_.read = FollowedFolder(words.folder, words.schema, 0).look({}).files;
      print_note("note: --known: the dataset has the {} files of {}\n", state_.read.size(),
                 words.folder.string());
    }
    state_.save(state_file());  // so that a later start is not the first one
  }

  // Whether something was done. What was added is trained before anything else is.
  bool step() {
    if (repeat_reading()) return true;
    if (trained_ != dataset_id()) {
      train();
      return true;
    }
    look_ = folder_.look(state_);
    if (look_.ignored != state_.ignored) {
      state_.ignored = look_.ignored;
      state_.save(state_file());
    }
    if (look_.files.empty()) return false;
    state_.reading = look_.files;
    state_.before = dataset_id();
    state_.save(state_file());
    add_files();
    return true;
  }

  // Of the last step, which did nothing. Throws Error if files have changed that the dataset has.
  const Look& last_look() const {
    check(
        look_.changed.empty(),
        "{}: files are read once and whole: put the new events alone into a file of another name, and remove "
        "this one or give it the bytes that it had",
        fmt::join(look_.changed, "; "));
    return look_;
  }

 private:
  Path state_file() const { return words_.run / "follow.json"; }
  Path log() const { return words_.run / "follow.log"; }
  std::string dataset_id() const { return read_manifest(dataset_).id; }

  // What was begun and has failed, or was killed. An append changes the dataset at once or not at all, and
  // one that was done is refused: the same files are tried again, until one of them has changed.
  bool repeat_reading() {
    if (state_.reading.empty()) return false;
    if (folder_.has(state_.reading))
      add_files();
    else
      end_reading(dataset_id() != state_.before);
    return true;
  }

  void add_files() {
    const Path list = words_.run / "follow.files";
    std::string names;
    for (const auto& [name, file] : state_.reading) names += name + '\n';
    write_file(list, names);
    const std::vector<std::string> words{
        "prepare",      "csv",         "--schema", words_.schema.string(), "--input", words_.folder.string(),
        "--files-from", list.string(), "--append", dataset_.string()};
    const auto [status, output] = run_command(words);
    const bool known = (status == 0 || status == 2) && output.find(kAppendedBefore) != std::string::npos;
    if (status != 0 && !known) fail_command(words, status);
    Json added = Json::array();
    for (auto& [name, file] : state_.reading) {
      if (!known && dataset_id() == state_.before) file.without_events = true;
      added.push_back(name);
    }
    if (known)
      print_note("note: {}: the dataset has all of their events\n",
                 fmt::join(added.get<std::vector<std::string>>(), ", "));
    else
      print({{"added", added}, {"dataset", dataset_id()}});
    end_reading(true);
  }

  void end_reading(bool were_read) {
    if (were_read)
      for (const auto& [name, file] : state_.reading) state_.read[name] = file;
    state_.reading.clear();
    state_.save(state_file());
  }

  void train() {
    const std::string id = dataset_id();
    const std::vector<std::string> words{"train", "--resume", words_.run.string()};
    if (const int status = run_command(words).first; status != 0) fail_command(words, status);
    trained_ = id;
    const Json summary = Json::parse(read_file(run_.summary()));
    print({{"trained", id}, {"step", summary.at("step")}});
  }

  // Returns the command's exit status and what it printed, of which warnings are printed here too.
  std::pair<int, std::string> run_command(std::vector<std::string> words) const {
    if (words_.threads > 0) words.insert(words.end(), {"--threads", std::to_string(words_.threads)});
    std::error_code none;
    const auto earlier = std::filesystem::exists(log(), none) ? std::filesystem::file_size(log()) : 0;
    const ChildCommand command{words, log()};
    int status = 0;
    const bool started = run_children(
        {&command, 1}, 1, [](std::size_t) {}, [&](std::size_t, int ended) { status = ended; });
    if (!started || status == kInterrupted) throw ExitStatus{kInterrupted};
    std::string output = read_file(log()).substr(earlier);
    for (const std::string& line : split(output, '\n'))
      if (line.starts_with("warning: ")) print_note("{}\n", line);
    return {status, std::move(output)};
  }

  [[noreturn]] void fail_command(const std::vector<std::string>& words, int status) const {
    fail("hstu {} failed with status {}: {}; its messages are in {}. The same command tries again",
         fmt::join(words, " "), status, last_line(log()), log().string());
  }

  static void print(const Json& line) {
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }

  FollowWords words_;
  RunFolder run_;
  Path dataset_;
  FileLock lock_;
  FollowedFolder folder_;
  FollowState state_;
  Look look_ = {};
  std::string trained_ = {};  // id of the dataset that the run has trained on, as far as this process knows
};

void wait(double seconds) {
  const std::atomic<bool>& stop = watch_stop_signals();
  for (const Clock::time_point began = Clock::now(); seconds_since(began) < seconds;) {
    if (stop) throw ExitStatus{kInterrupted};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void follow(const FollowWords& words) {
  Follower follower(words);
  for (bool waited = false;;) {
    if (follower.step()) continue;
    const Look& look = follower.last_look();
    if (!words.once) {
      wait(words.every);
    } else if (look.clock_ahead && !waited) {
      waited = true;
      wait(words.settle);
    } else {
      if (!look.waiting.empty())
        print_note("note: not read yet, because they are empty or were written less than {} s ago: {}\n",
                   words.settle, fmt::join(look.waiting, ", "));
      return;
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
                    "at the first start, when RUN has no follow.json: the dataset has the files that are in "
                    "FOLDER\nnow; at later ones it changes nothing");
  command->add_flag("--once", words->once, "end when nothing is new");
  command->add_option("--threads", words->threads, "of each command; 0: all cores")
      ->check(CLI::Range(0, kMostThreads));
  command->footer(
      "Does hstu prepare --append for new files and hstu train --resume RUN, until SIGTERM or SIGINT (exit "
      "status\n"
      "75). The files are those that the schema names; only patterns such as files = [\"day=*/*.csv\"] reach "
      "folders\n"
      "below FOLDER. RUN/follow.json says which files the dataset has: whenever this is killed, the same "
      "command goes\n"
      "on, and no event is trained twice. A file that cannot be read ends it with status 1; the same command "
      "goes on\n"
      "when the file was mended or removed. Write files under a name that begins with '.' or '_', or ends "
      "with .tmp\n"
      "or .part, and rename them when they are complete. evaluation.next_window = true scores new windows "
      "before they\n"
      "are trained; checkpoint.publish publishes what was trained. Prints a JSON line for each step; "
      "RUN/follow.log\n"
      "has the commands' messages.\n"
      "Example:\n"
      "  hstu follow logs --schema shop.toml --run run --known");
  command->callback([words] { follow(*words); });
}

}  // namespace hstu
