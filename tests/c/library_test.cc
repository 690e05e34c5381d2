// libhstu_attention.so as other programs find it.
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>

#include "c/header.h"
#include "command.h"

namespace hstu {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class SharedLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(library_)) GTEST_SKIP() << "this build has no shared library (no CUDA)";
  }
  // The last words of the command's lines that hold `key`.
  std::vector<std::string> last_words(const std::string& command, const std::string& key) const {
    const CommandResult result = run_command(command + " " + library_);
    EXPECT_EQ(result.exit_status, 0) << result.text;
    std::vector<std::string> words;
    std::istringstream lines(result.text);
    for (std::string line; std::getline(lines, line);)
      if (line.find(key) != std::string::npos) words.push_back(line.substr(line.rfind(' ') + 1));
    return words;
  }
  const std::string library_ = HSTU_PROGRAM_DIR "/libhstu_attention.so";
};

TEST_F(SharedLibrary, ExportsTheHeadersFunctionsAndNothingElse) {
  if (!has_command("nm")) GTEST_SKIP() << "no nm here";
  EXPECT_THAT(last_words("nm -D --defined-only", " "),
              ElementsAre("hstu_attention_backward", "hstu_attention_check", "hstu_attention_error",
                          "hstu_attention_explain", "hstu_attention_forward", "hstu_attention_problem_init",
                          "hstu_attention_workspace"));
}

TEST_F(SharedLibrary, NeedsNoLibraryButLibc) {
  if (!has_command("readelf")) GTEST_SKIP() << "no readelf here";
  const std::vector<std::string> needed = last_words("LC_ALL=C readelf -d", "(NEEDED)");
  EXPECT_THAT(needed, Not(::testing::IsEmpty()));
  // The dynamic loader, and libraries that have been part of libc since its release 2.34, are libc.
  EXPECT_THAT(needed,
              Each(AnyOf(HasSubstr("[libc.so"), HasSubstr("[ld-linux"), HasSubstr("[libm.so"),
                         HasSubstr("[libdl.so"), HasSubstr("[librt.so"), HasSubstr("[libpthread.so"))));
}

class PythonExample : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_command("python3")) GTEST_SKIP() << "no python3 here";
  }
  // -B: leaves no compiled files in the source tree.
  static CommandResult python(const std::string& program) {
    return run_command("PYTHONPATH=" HSTU_SOURCE_DIR "/python:" HSTU_SOURCE_DIR "/examples python3 -B -c '" +
                       program + "'");
  }
};

TEST_F(PythonExample, StructuresLieAsInC) {
  char expected[4096];
  layout_of_structures(expected, sizeof expected);
  const CommandResult result = python(R"(
import ctypes, hstu.attention_library as hstu_attention
for kind in hstu_attention.Problem, hstu_attention.Rows:
    print(kind.__name__, 0, ctypes.sizeof(kind))
    for name, _ in kind._fields_:
        print(name, getattr(kind, name).offset, getattr(kind, name).size))");
  EXPECT_EQ(result.text, expected);
}

TEST_F(PythonExample, LoadsTheLibraryAndRaisesItsMessages) {
  const std::string library = HSTU_PROGRAM_DIR "/libhstu_attention.so";
  if (!std::filesystem::exists(library)) GTEST_SKIP() << "this build has no shared library (no CUDA)";
  const CommandResult result = python(R"(
import ctypes, hstu.attention_library as hstu_attention
library = hstu_attention.Library(")" + library +
                                      R"(")
p = library.problem()
print(p.size == ctypes.sizeof(p), p.window_left, p.target_group, p.scale)
p.type = 7
try:
    library.workspace(p)
except RuntimeError as error:
    print(error))");
  EXPECT_EQ(result.text,
            "True -1 1 1.0\nattention: type: expected HSTU_BF16, HSTU_FP16 or HSTU_FP32, found 7\n");
}

TEST_F(PythonExample, AMissingLibraryIsNamed) {
  const CommandResult named = python("import hstu.attention_library as a; a.Library(\"/nowhere/x.so\")");
  EXPECT_EQ(named.exit_status, 1);
  EXPECT_THAT(named.text, HasSubstr("cannot load /nowhere/x.so"));
  EXPECT_THAT(python("import hstu.attention_library as a; a.Library()").text,
              HasSubstr("this installation of hstu has no GPU kernels"));
}

TEST_F(PythonExample, TorchExampleIsPythonAndAsksForTorch) {
  EXPECT_EQ(
      python("compile(open(\"" HSTU_SOURCE_DIR "/examples/attention_torch.py\").read(), \"x\", \"exec\")")
          .text,
      "");
  if (python("import torch").exit_status == 0) GTEST_SKIP() << "PyTorch is here";
  const CommandResult result = python("import attention_torch");
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.text, HasSubstr("needs PyTorch"));
}

}  // namespace
}  // namespace hstu
