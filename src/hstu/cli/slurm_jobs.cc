#include "hstu/cli/slurm_jobs.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include <sys/wait.h>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/base/version.h"

namespace hstu {
namespace {

using ShellWords = std::vector<std::string>;

// For a shell.
std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                              "_-./=:,+@%") == std::string::npos)
    return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string shell_words(const ShellWords& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

std::string trimmed_text(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

struct Output {
  int status;
  std::string text;  // of both streams
};
Output run_shell(const std::string& line) {
  FILE* const pipe = ::popen((line + " 2>&1").c_str(), "r");
  check(pipe != nullptr, "cannot start {}", line);
  Output output{0, {}};
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    output.text.append(buffer, n);
  const int status = ::pclose(pipe);
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return output;
}

// The command here or on the host of the words.
Output run_there(const ShellWords& words, const std::string& host) {
  return run_shell(host.empty() ? shell_words(words) : shell_words({"ssh", host, shell_words(words)}));
}

void copy_program(const Path& to) {
  const Path program = std::filesystem::read_symlink("/proc/self/exe");
  std::filesystem::create_directories(to / "bin");
  for (const char* name : {"hstu", "hstu-prepare"}) {
    const Path from = program.parent_path() / name;
    if (std::filesystem::exists(from)) std::filesystem::copy_file(from, to / "bin" / name);
  }
  // What an installed program brings along is found beside it.
  const Path libraries = program.parent_path().parent_path() / "lib/hstu";
  if (std::filesystem::is_directory(libraries))
    std::filesystem::copy(libraries, to / "lib/hstu", std::filesystem::copy_options::recursive);
}

std::string program_of(const Path& folder) {
  return (folder / "copy/bin/hstu").string();
}

// The number of the job.
std::string submit(const Path& script, const std::string& dependency, const SlurmWords& words) {
  ShellWords command{"sbatch", "--parsable"};
  if (!dependency.empty()) command.push_back("--dependency=" + dependency);
  command.push_back(script.string());
  const Output output = run_there(command, words.host);
  const std::string id = trimmed_text(split(output.text, ';').front());
  if (output.status != 0 || !parse_number<std::int64_t>(id))
    fail("{} failed with status {}: {}", shell_words(command), output.status, trimmed_text(output.text));
  return id;
}

void wait_for(const std::vector<std::string>& ids, const SlurmWords& words) {
  const ShellWords command{"squeue", "--noheader", "--format=%i",
                           "--jobs=" + fmt::format("{}", fmt::join(ids, ","))};
  while (true) {
    const Output output = run_there(command, words.host);
    // Jobs that the cluster has forgotten are no error of the queue: it says that their numbers are invalid.
    if (output.status != 0 && output.text.find("Invalid job id") == std::string::npos)
      fail("{} failed with status {}: {}", shell_words(command), output.status, trimmed_text(output.text));
    if (output.status != 0 || trimmed_text(output.text).empty()) return;
    std::this_thread::sleep_for(std::chrono::seconds(words.poll_seconds));
  }
}

}  // namespace

Path copy_for_jobs(const Path& folder, const Path& suite, const Path& config) {
  const Path copy = folder / "copy", copied = copy / "configs" / config.filename();
  if (std::filesystem::exists(copy)) {
    print_note("jobs run the copy of an earlier command: {}\n", copy.string());
    return copied;
  }
  StagedFolder staged(copy);
  copy_program(staged.path());
  std::filesystem::create_directories(staged.path() / "configs");
  write_file(staged.path() / "configs" / config.filename(), read_config_file(config));
  write_file(staged.path() / suite.filename(), read_config_file(suite));
  const std::string tree = std::filesystem::absolute(suite).parent_path().string();
  const Output commit = run_shell(shell_words({"git", "-C", tree, "rev-parse", "HEAD"}));
  write_file(staged.path() / "commit.txt",
             fmt::format("hstu {}\n{}", version(), commit.status == 0 ? commit.text : "no git tree\n"));
  if (commit.status == 0) {
    const Output difference = run_shell(shell_words({"git", "-C", tree, "diff", "HEAD"}));
    write_file(staged.path() / "difference.patch", difference.status == 0 ? difference.text : "");
  }
  staged.commit();
  return copied;
}

std::string slurm_script(const SlurmJob& job, const SlurmWords& words, const Path& folder) {
  const bool of_ranks = job.commands.empty();
  std::string text = fmt::format(
      "#!/bin/bash\n#SBATCH --job-name=hstu-{}\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n", job.name,
      of_ranks ? words.nodes : 1, of_ranks ? words.gpus_per_node : 1);
  // One GPU for each rank: both numbers are the same value.
  if (of_ranks) text += fmt::format("#SBATCH --gpus-per-node={}\n#SBATCH --exclusive\n", words.gpus_per_node);
  text += fmt::format("#SBATCH --time={}\n#SBATCH --output={}\n#SBATCH --open-mode=append\n", words.time,
                      (folder / "logs" / (job.name + ".txt")).string());
  if (!words.partition.empty()) text += fmt::format("#SBATCH --partition={}\n", words.partition);
  if (!words.account.empty()) text += fmt::format("#SBATCH --account={}\n", words.account);
  text += "set -e\n";
  const std::string program = program_of(folder);
  const auto line = [&](ShellWords command) {
    command.insert(command.begin(), program);
    return shell_words(command);
  };
  for (const ShellWords& command : job.commands) text += line(command) + "\n";
  if (!of_ranks) return text;
  return text + fmt::format("if [ -e {} ]; then\n  exec srun {}\nfi\nexec srun {}\n",
                            quoted(RunFolder{job.run}.config().string()), line(job.resume), line(job.begin));
}

void submit_jobs(const std::vector<SlurmJob>& jobs, const SlurmWords& words, const Path& folder) {
  std::filesystem::create_directories(folder / "jobs");
  std::filesystem::create_directories(folder / "logs");
  std::vector<std::string> ids;
  std::string data, before;
  for (const SlurmJob& job : jobs) {
    const Path script = folder / "jobs" / (job.name + ".sh");
    write_file(script, slurm_script(job, words, folder));
    std::string dependency = data.empty() ? "" : "afterok:" + data;
    if (words.one_by_one && !before.empty())
      dependency += (dependency.empty() ? "afterany:" : ",afterany:") + before;
    const std::string id = submit(script, dependency, words);
    print_note("{}: job {}\n", job.name, id);
    ids.push_back(id);
    if (job.commands.empty())
      before = id;
    else
      data = id;
  }
  if (words.wait && !ids.empty()) wait_for(ids, words);
}

}  // namespace hstu
