#include "hstu/cli/slurm_jobs.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include <sys/wait.h>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/foreign_text.h"
#include "hstu/base/terminal.h"
#include "hstu/base/text.h"
#include "hstu/base/version.h"
#include "hstu/dataset/manifest.h"

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

// For a line #SBATCH, where " and \ are sbatch's.
std::string quoted_option(const std::string& word) {
  std::string text = "\"";
  for (const char c : word) text += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return text + "\"";
}

void check_line(const char* name, const std::string& word) {
  if (!is_one_line(word)) fail_usage("{} \"{}\": expected {}", name, word, kOneLine);
}

// What names the output of a job: % begins a name of SLURM's, a path with \ has none.
std::string output_of(const Path& folder, const std::string& job) {
  std::string path;
  for (const char c : (folder / "logs" / (job + ".txt")).string())
    path += c == '%' ? "%%" : std::string(1, c);
  return quoted_option(path);
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
  return run_shell(host.empty() ? shell_words(words) : shell_words({"ssh", "--", host, shell_words(words)}));
}

// The state of the tree that the suite is from. A tree that somebody else made may name programs
// (core.fsmonitor, filters, drivers of diff) that git would run: the difference is made by a repository with
// a configuration of its own, which reads the objects of the tree. `scratch`: for that repository.
void write_tree_state(const Path& tree, const Path& scratch, const Path& folder) {
  // Variables such as GIT_DIR would name another tree.
  const std::string there =
      "unset $(git rev-parse --local-env-vars) && " + shell_words({"cd", "--", tree.string()}) + " && ";
  const auto answer = [&](const ShellWords& words) {
    const Output output = run_shell(there + shell_words(words));
    return output.status == 0 ? trimmed_text(output.text) : "";
  };
  const std::string commit = answer({"git", "rev-parse", "--verify", "HEAD"});
  const std::string top = answer({"git", "rev-parse", "--show-toplevel"});
  const std::string objects = answer({"git", "rev-parse", "--path-format=absolute", "--git-path", "objects"});
  // core.worktree may name a folder that the tree is not in.
  const std::string below = tree.lexically_relative(top).string();
  const bool known = !commit.empty() && !objects.empty() && (below == "." || is_path_below(below));
  write_file(folder / "commit.txt", fmt::format("hstu {}\n{}\n", version(), known ? commit : "no git tree"));
  if (!known) return;
  const auto ours = [&](const ShellWords& words) {
    return shell_words({"env", "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + objects, "git",
                        "--git-dir=" + (scratch / ".git").string(), "--work-tree=" + top}) +
           " " + shell_words(words);
  };
  const Output difference =
      run_shell(there + shell_words({"git", "init", "--quiet", "--", scratch.string()}) + " && " +
                ours({"read-tree", commit}) + " && " +
                ours({"diff", "--no-ext-diff", "--no-textconv", "--submodule=short",
                      "--ignore-submodules=dirty", commit}));
  std::filesystem::remove_all(scratch);
  write_file(folder / "difference.patch",
             difference.status == 0 ? difference.text : "git cannot tell: " + difference.text);
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
  std::string id = trimmed_text(split(output.text, ';').front());
  if (output.status != 0 || !parse_number<std::int64_t>(id))
    fail("{} failed with status {}: {}", shell_words(command), output.status, trimmed_text(output.text));
  return id;
}

// Those that wait or run.
std::vector<std::string> in_queue(const std::vector<std::string>& ids, const SlurmWords& words) {
  if (ids.empty()) return {};
  const ShellWords command{"squeue", "--noheader", "--format=%i",
                           "--jobs=" + fmt::format("{}", fmt::join(ids, ","))};
  const Output output = run_there(command, words.host);
  // Jobs that the cluster has forgotten are no error of the queue: it says that their numbers are invalid.
  const bool forgotten = output.status != 0 && output.text.find("Invalid job id") != std::string::npos;
  if (output.status != 0 && !forgotten)
    fail("{} failed with status {}: {}", shell_words(command), output.status, trimmed_text(output.text));
  std::vector<std::string> lines = split(trimmed_text(output.text), '\n');
  std::erase_if(lines, [&](const std::string& line) { return forgotten || !contains(ids, line); });
  return lines;
}

void wait_for(const std::vector<std::string>& ids, const SlurmWords& words) {
  while (!in_queue(ids, words).empty()) std::this_thread::sleep_for(std::chrono::seconds(words.poll_seconds));
}

// FOLDER/jobs/NAME.id: the number of the job that was submitted last; "": none was.
std::string submitted_before(const Path& file) {
  return std::filesystem::exists(file) ? trimmed_text(read_file(file)) : "";
}

}  // namespace

Path copy_for_jobs(const Path& folder, const Path& suite, const Path& config) {
  const Path copy = folder / "copy";
  Path copied = copy / "configs" / config.filename();
  if (std::filesystem::exists(copy)) {
    print_note("jobs run the copy of an earlier command: {}\n", copy.string());
    return copied;
  }
  StagedFolder staged(copy);
  copy_program(staged.path());
  std::filesystem::create_directories(staged.path() / "configs");
  write_file(staged.path() / "configs" / config.filename(), read_config_file(config));
  write_file(staged.path() / suite.filename(), read_config_file(suite));
  write_tree_state(std::filesystem::canonical(std::filesystem::absolute(suite).parent_path()),
                   staged.path() / "git", staged.path());
  staged.commit();
  return copied;
}

void check_words(const SlurmWords& words, const Path& output) {
  check_line("--time", words.time);
  check_line("--partition", words.partition);
  check_line("--account", words.account);
  check_line("--output", output.string());
  if (output.string().find('\\') != std::string::npos)
    fail_usage("--output \"{}\": SLURM takes \\ out of the name of a job's output: choose another folder",
               output.string());
  if (!words.host.empty() && !is_login(words.host))
    fail_usage("--host \"{}\": expected a host, or USER@HOST", words.host);
}

std::string slurm_script(const SlurmJob& job, const SlurmWords& words, const Path& folder) {
  const bool of_ranks = job.commands.empty();
  std::string text = fmt::format(
      "#!/bin/bash\n#SBATCH --job-name=hstu-{}\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n", job.name,
      of_ranks ? words.nodes : 1, of_ranks ? words.gpus_per_node : 1);
  // One GPU for each rank: both numbers are the same value.
  // Jobs of ranks leave the queue if the data failed; the data are repeated where a host failed.
  text += of_ranks ? fmt::format(
                         "#SBATCH --gpus-per-node={}\n#SBATCH --exclusive\n"
                         "#SBATCH --kill-on-invalid-dep=yes\n",
                         words.gpus_per_node)
                   : "#SBATCH --requeue\n";
  text += fmt::format("#SBATCH --time={}\n#SBATCH --output={}\n#SBATCH --open-mode=append\n",
                      quoted_option(words.time), output_of(folder, job.name));
  if (!words.partition.empty())
    text += fmt::format("#SBATCH --partition={}\n", quoted_option(words.partition));
  if (!words.account.empty()) text += fmt::format("#SBATCH --account={}\n", quoted_option(words.account));
  text += "set -e\n";
  const std::string program = program_of(folder);
  const auto line = [&](ShellWords command) {
    command.insert(command.begin(), program);
    return shell_words(command);
  };
  // What a job that was killed has left is removed, and made again.
  if (!of_ranks) {
    const Path data = job.run.parent_path();
    text +=
        fmt::format("[ ! -e {} ] || exit 0\nrm -rf -- {}\nmkdir -p -- {}\n",
                    quoted((job.run / kManifestFile).string()), quoted(data.string()), quoted(data.string()));
  }
  for (const ShellWords& command : job.commands) text += line(command) + "\n";
  if (!of_ranks) return text;
  return text + fmt::format("if [ -e {} ]; then\n  exec srun {}\nfi\nexec srun {}\n",
                            quoted(RunFolder{job.run}.config().string()), line(job.resume), line(job.begin));
}

void submit_jobs(const std::vector<SlurmJob>& jobs, const SlurmWords& words, const Path& folder) {
  std::filesystem::create_directories(folder / "jobs");
  std::filesystem::create_directories(folder / "logs");
  std::vector<std::string> ids;
  for (const SlurmJob& job : jobs) {
    const std::string id = submitted_before(folder / "jobs" / (job.name + ".id"));
    if (parse_number<std::int64_t>(id)) ids.push_back(id);
  }
  const std::vector<std::string> queued = in_queue(ids, words);
  ids.clear();
  std::string data, before;
  for (const SlurmJob& job : jobs) {
    const Path script = folder / "jobs" / (job.name + ".sh"), id_file = folder / "jobs" / (job.name + ".id");
    std::string dependency = data.empty() ? "" : "afterok:" + data;
    if (words.one_by_one && !before.empty())
      dependency += (dependency.empty() ? "afterany:" : ",afterany:") + before;
    std::string id = submitted_before(id_file);
    if (contains(queued, id)) {
      print_note("{}: job {} is in the queue: it is not submitted again\n", job.name, id);
    } else {
      write_file(script, slurm_script(job, words, folder));
      id = submit(script, dependency, words);
      write_file(id_file, id + "\n");
      print_note("{}: job {}\n", job.name, id);
    }
    ids.push_back(id);
    if (job.commands.empty())
      before = id;
    else
      data = id;
  }
  if (words.wait && !ids.empty()) wait_for(ids, words);
}

}  // namespace hstu
