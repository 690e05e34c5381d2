#include "hstu/base/progress.h"

#include <chrono>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hstu/base/terminal.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const ProgressLine kLine{"train", "samples", 1'200, 90'000, 150, "step 4, window 0, loss 0.6931, AUC 0.7712"};
constexpr const char* kWhole =
    "train: 1,200 samples of 90,000 (1 %), 150 samples/s, 9 min 52 s left, step 4, window 0, loss 0.6931, "
    "AUC 0.7712";

TEST(ProgressLine, AWideTerminalShowsEverything) {
  EXPECT_EQ(kLine.text(), kWhole);
  EXPECT_EQ(kLine.text(200), kWhole);
}

TEST(ProgressLine, ANarrowOneGivesUpWhatMattersLeast) {
  const std::string whole = kWhole;
  const auto size = static_cast<int>(whole.size());
  EXPECT_EQ(kLine.text(size), whole);
  EXPECT_THAT(kLine.text(size - 1), AllOf(Not(HasSubstr("samples/s")), HasSubstr("left"), HasSubstr("AUC")));
  EXPECT_EQ(kLine.text(80),
            "train: 1,200 samples of 90,000 (1 %), step 4, window 0, loss 0.6931, AUC 0.7712");
  for (int columns = 1; columns < 120; ++columns)
    EXPECT_LE(kLine.text(columns).size(), static_cast<std::size_t>(columns));
}

// Everything between two returns of the cursor is one line of the terminal.
TEST(Progress, RewritesOneLineOfATerminal) {
  const int controller = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(controller, 0);
  ASSERT_EQ(::grantpt(controller) + ::unlockpt(controller), 0);
  const int terminal = ::open(::ptsname(controller), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  const winsize size{.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::ioctl(terminal, TIOCSWINSZ, &size), 0);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(terminal, STDERR_FILENO);
  const int columns = terminal_columns();
  {
    Progress progress("train", 90'000, "samples");
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    progress.advance_to(1'200, kLine.detail);
    progress.finish("completed");
  }
  ::dup2(saved, STDERR_FILENO);
  for (const int descriptor : {saved, terminal}) ::close(descriptor);
  // A read gives what has arrived so far, and fails after the rest.
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(controller, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  ::close(controller);
  EXPECT_EQ(columns, 40);
  const std::string start = "\r\033[K";
  ASSERT_EQ(text.find(start), 0u);
  const std::string line = text.substr(start.size(), text.find('\r', 1) - start.size());
  EXPECT_THAT(line, HasSubstr("train: 1,200 samples"));
  EXPECT_EQ(line.size(), 39u);
  EXPECT_THAT(text, HasSubstr("completed"));
}

}  // namespace
}  // namespace hstu
