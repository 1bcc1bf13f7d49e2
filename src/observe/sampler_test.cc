#include "observe/sampler.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

/// A child that sleeps in read() of a pipe until it is destroyed.
class Child {
 public:
  Child() {
    EXPECT_EQ(::pipe2(pipe_.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      char byte = 0;
      ::close(pipe_[1]);
      [[maybe_unused]] const ssize_t size = ::read(pipe_[0], &byte, 1);
      ::_exit(0);
    }
  }
  ~Child() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
    pid_ = 0;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  std::array<int, 2> pipe_{};
  pid_t pid_ = 0;
};

SamplerOptions fast() {
  SamplerOptions options;
  options.rate = 100;
  return options;
}

TEST(Sampler, SeesAProcessThatSleepsInAPipe) {
  Child child;
  auto sampler = Sampler::attach({child.pid()}, fast());
  ASSERT_TRUE(sampler) << sampler.error().text();
  std::optional<Sample> last;
  for (int i = 0; i < 5; ++i) last = sampler->next();
  ASSERT_TRUE(last);
  ASSERT_EQ(last->processes.size(), 1U);
  const ProcessSample& p = last->processes[0];
  EXPECT_TRUE(p.alive);
  EXPECT_GT(p.looks.all(), 5U);
  for (std::size_t i = 1; i < kKeptLooks; ++i) EXPECT_GT(p.look_at_ns[i], p.look_at_ns[i - 1]);
  EXPECT_LT(p.look_at_ns.back(), last->at_ns);
  EXPECT_GT(p.resident, 0);
  EXPECT_EQ(sampler->processes()[0].pid, child.pid());
  EXPECT_EQ(sampler->take_changed().size(), 1U);
  EXPECT_TRUE(sampler->take_changed().empty());
}

TEST(Sampler, EndsWhenTheProcessDoes) {
  Child child;
  auto sampler = Sampler::attach({child.pid()}, fast());
  ASSERT_TRUE(sampler);
  ASSERT_TRUE(sampler->next());
  child.end();
  int more = 0;
  while (sampler->next()) ++more;
  EXPECT_LT(more, 300);
}

TEST(Sampler, GoesOnWhenAChildOfAShellEnds) {
  const pid_t shell = ::fork();
  if (shell == 0) {
    for (;;) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::usleep(20'000);
        ::_exit(0);
      }
      ::waitpid(child, nullptr, 0);
    }
  }
  auto sampler = Sampler::attach({shell}, fast());
  int samples = 0;
  while (sampler && samples < 60 && sampler->next()) ++samples;
  ::kill(shell, SIGKILL);
  ::waitpid(shell, nullptr, 0);
  ASSERT_TRUE(sampler);
  EXPECT_EQ(samples, 60);
}

TEST(Sampler, EndsWhenItIsTold) {
  Child child;
  auto sampler = Sampler::attach({child.pid()}, fast());
  ASSERT_TRUE(sampler);
  int left = 8;
  sampler->stop_when([&] { return --left < 0; });
  int samples = 0;
  while (sampler->next()) ++samples;
  EXPECT_GT(samples, 0);
  EXPECT_LT(samples, 9);
}

TEST(Sampler, RefusesWhatIsNotThere) {
  Child child;
  const pid_t pid = child.pid();
  child.end();
  const auto sampler = Sampler::attach({pid}, fast());
  ASSERT_FALSE(sampler);
  EXPECT_NE(sampler.error().text().find("no such process that this user can see"),
            std::string::npos);
}

TEST(Sampler, RefusesAZombie) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  const auto sampler = Sampler::attach({pid}, fast());
  ::waitpid(pid, nullptr, 0);
  ASSERT_FALSE(sampler);
  EXPECT_NE(sampler.error().text().find("zombie"), std::string::npos);
}

/// A made-up /proc with one process.
std::string made_proc(const std::string& name, const std::string& status) {
  const auto root = std::filesystem::temp_directory_path() /
                    ("sampler_test." + std::to_string(::getpid()) + "." + name);
  std::filesystem::create_directories(root / "77");
  std::ofstream(root / "77/stat")
      << "77 (python) S 1 77 77 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 100 0 0\n";
  std::ofstream(root / "77/status") << status;
  return root.string();
}

TEST(Sampler, RefusesAThreadAndNamesItsProcess) {
  SamplerOptions options = fast();
  options.proc = made_proc("thread", "Tgid:\t55\n");
  const auto sampler = Sampler::attach({77}, options);
  ASSERT_FALSE(sampler);
  EXPECT_EQ(sampler.error().text(), "77: is a thread of process 55; watch that");
}

TEST(Sampler, RefusesAThreadOfTheKernel) {
  SamplerOptions options = fast();
  options.proc = made_proc("kernel", "Tgid:\t77\nKthread:\t1\n");
  const auto sampler = Sampler::attach({77}, options);
  ASSERT_FALSE(sampler);
  EXPECT_EQ(sampler.error().text(), "77: is a thread of the kernel");
}

}  // namespace
}  // namespace stoker
