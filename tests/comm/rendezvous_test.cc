// Strangers at the meeting of ranks.
#include "hstu/comm/rendezvous.h"

#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "hstu/base/error.h"
#include "hstu/comm/tcp_transport.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHere = "127.0.0.1";

Deadline soon() {
  return Clock::now() + std::chrono::seconds(20);
}

class RanksAndStrangers : public ::testing::Test {
 protected:
  Meeting meeting(int rank, double seconds = 60) const {
    return {.rank = rank, .ranks = 2, .host = kHere, .port = port_, .token = {1, 2}, .seconds = seconds};
  }
  // What rank 0 says in the end; "": it met rank 1.
  std::future<std::string> start_rank_0(Meeting zero) {
    zero.listener = std::move(listener_.socket);
    return std::async(std::launch::async, [of = std::move(zero)]() mutable { return words_of_meeting(of); });
  }
  static std::string words_of_meeting(Meeting& meeting) {
    try {
      connect_ranks(meeting);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  Socket stranger(const std::string& says) const {
    Socket socket = connect_to(kHere, port_, soon());
    EXPECT_TRUE(send_all(socket, says.data(), says.size(), soon()));
    return socket;
  }

  Listener listener_ = listen_on(kHere, 0);
  int port_ = listener_.port;
};

TEST_F(RanksAndStrangers, WhoSaysNothingDelaysNobody) {
  const Socket silent = stranger("");
  auto zero = start_rank_0(meeting(0));
  Meeting one = meeting(1);
  EXPECT_EQ(words_of_meeting(one), "");
  EXPECT_EQ(zero.get(), "");
  EXPECT_TRUE(silent.is_open());
}

TEST_F(RanksAndStrangers, GarbageHalfAHelloAndAnEndAreDropped) {
  const std::string garbage("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), zeros(4096, '\0');
  std::vector<Socket> strangers;
  for (const std::string& says : {garbage, zeros, zeros.substr(0, 7), std::string("x")})
    strangers.push_back(stranger(says));
  stranger("ends");
  auto zero = start_rank_0(meeting(0));
  Meeting one = meeting(1);
  EXPECT_EQ(words_of_meeting(one), "");
  EXPECT_EQ(zero.get(), "");
}

TEST_F(RanksAndStrangers, AThousandConnectionsAreNoMatter) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  auto zero = start_rank_0(meeting(0));
  std::vector<Socket> strangers(1000);
  for (std::size_t n = 0; n < strangers.size(); ++n) strangers[n] = stranger(n % 2 == 0 ? "" : "x");
  Meeting one = meeting(1);
  EXPECT_EQ(words_of_meeting(one), "");
  EXPECT_EQ(zero.get(), "");
}

TEST_F(RanksAndStrangers, ARankWithAnotherTokenIsNotTaken) {
  auto zero = start_rank_0(meeting(0, 0.6));
  Meeting other = meeting(1, 0.3);
  other.token.high ^= 1;
  EXPECT_THAT(words_of_meeting(other),
              HasSubstr("does not prove within 0 s that it is rank 0 of this group"));
  EXPECT_THAT(zero.get(), HasSubstr("for rank 1, which did not come"));
}

// A stranger who listens on the port would otherwise get what a rank sends.
TEST_F(RanksAndStrangers, ARankTakesNoRankZeroThatDoesNotKnowTheToken) {
  std::vector<char> heard(40);
  std::jthread stranger([&] {
    std::string address;
    pollfd waited{listener_.socket.descriptor(), POLLIN, 0};
    wait_for_any(std::span(&waited, 1), soon());
    const Socket socket = accept_from(listener_.socket, &address);
    const std::vector<char> zeros(64);
    send_all(socket, zeros.data(), 16, soon());
    receive_all(socket, heard.data(), heard.size(), soon());
    send_all(socket, zeros.data(), 8, soon());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  Meeting one = meeting(1, 0.5);
  EXPECT_THAT(words_of_meeting(one), HasSubstr("does not prove"));
  stranger.join();
  const std::string said(heard.begin(), heard.end());
  EXPECT_EQ(said.find(std::string("\1\0\0\0\0\0\0\0\2", 9)), std::string::npos) << "the token is never sent";
}

TEST_F(RanksAndStrangers, ATokenInAFileIsNewForEachMeetingAndGoneAfterIt) {
  const Path file = temporary_folder() / "new" / ".run.ranks";
  std::filesystem::create_directory(file.parent_path());
  write_token(file, {3, 4});  // of a start that was killed
  constexpr int kRanks = 6;
  std::vector<Meeting> meetings;
  std::vector<std::future<std::string>> words;
  for (int r = 0; r < kRanks; ++r) {
    meetings.push_back(meeting(r));
    meetings.back().ranks = kRanks;
    meetings.back().token_file = file;
  }
  for (int r = 1; r < kRanks; ++r)
    words.push_back(std::async(std::launch::async, [&, r] { return words_of_meeting(meetings[r]); }));
  words.push_back(start_rank_0(std::move(meetings[0])));
  for (auto& of : words) EXPECT_EQ(of.get(), "");
  EXPECT_NE(meetings[1].token, (GroupToken{3, 4}));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(RanksAndStrangers, ARankThatDoesNotSeeTheFileOfTheTokenSaysSo) {
  auto zero = start_rank_0(meeting(0, 0.6));
  Meeting one = meeting(1, 0.3);
  one.token_file = temporary_folder() / "elsewhere";
  EXPECT_THAT(words_of_meeting(one), HasSubstr("does this rank not see " + one.token_file.string()));
  zero.get();
}

TEST_F(RanksAndStrangers, RanksListenOnTheAddressByWhichTheyAreFoundAlone) {
  Meeting zero = meeting(0), one = meeting(1);
  zero.listener = std::move(listener_.socket);
  std::jthread other([&] { tcp_transport(std::move(one))->offer(); });
  const auto transport = tcp_transport(std::move(zero));
  const int port = static_cast<int>(transport->offer());
  EXPECT_TRUE(connect_to(kHere, port, Clock::now()).is_open());
  EXPECT_FALSE(connect_to("127.0.0.2", port, Clock::now()).is_open());
}

TEST(GroupToken, ItsProofIsSipHash) {
  // The paper's appendix: key 00..0f, text 00..0e; and the empty text of the reference implementation.
  const GroupToken key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text(15, '\0');
  std::iota(text.begin(), text.end(), '\0');
  EXPECT_EQ(proof_of(key, text), 0xa129ca6149be45e5u);
  EXPECT_EQ(proof_of(key, ""), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(proof_of(key, text.substr(0, 8)), 0x93f5f5799a932462u);
}

TEST(GroupToken, ItsFileIsReadByThisUserAlone) {
  const Path file = temporary_folder() / "token";
  EXPECT_EQ(read_token(file), std::nullopt);
  write_token(file, {5, 6});
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(read_token(file), (GroupToken{5, 6}));
  write_token(file, {7, 8});
  EXPECT_EQ(read_token(file), (GroupToken{7, 8}));
  write_file(file, "short");
  EXPECT_EQ(read_token(file), std::nullopt);
  std::filesystem::remove(file);
  std::filesystem::create_symlink(file.string() + "2", file);
  write_file(file.string() + "2", std::string(16, 'x'));
  EXPECT_EQ(read_token(file), std::nullopt) << "a link is of whoever made it";
}

TEST(GroupToken, TextsThatCanBeGuessedAreRefused) {
  EXPECT_THROW(token_of_text("secret"), UsageError);
  EXPECT_NE(token_of_text("0123456789abcdef"), token_of_text("0123456789abcdeg"));
  EXPECT_NE(random_token(), random_token());
  EXPECT_NE(derived_token({1, 2}, "a"), derived_token({1, 2}, "b"));
}

}  // namespace
}  // namespace hstu
