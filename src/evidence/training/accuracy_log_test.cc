#include "evidence/training/accuracy_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/files.h"
#include "base/sqlite.h"

namespace stoker {
namespace {
namespace fs = std::filesystem;

class AccuracyLog : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("stoker_accuracy_test_" + std::to_string(::getpid()));
    path_ = folder_ / "state" / "accuracy.db";
  }
  void TearDown() override { fs::remove_all(folder_); }

  static AccuracyEntry entry(double fact) {
    AccuracyEntry e;
    e.date = utc_now();
    e.model = "net'; DROP TABLE accuracy; --";
    e.machine = "cpu.toml";
    e.device = "cpu";
    e.stoker = "0.1.0";
    e.torch = "2.13.0";
    e.batch = 8;
    e.threads = 2;
    e.precision = "fp32";
    e.figure = "step";
    e.unit = "ms";
    e.forecast = 100;
    e.low = 90;
    e.high = 115;
    e.fact = fact;
    e.basis = "test";
    return e;
  }

  fs::path folder_, path_;
};

TEST_F(AccuracyLog, KeepsWhatWasAdded) {
  EXPECT_TRUE(read_accuracy(path_, 10)->empty());  // and makes nothing
  EXPECT_FALSE(fs::exists(folder_));
  ASSERT_TRUE(append_accuracy(path_, {entry(95), entry(120)}).has_value());
  ASSERT_TRUE(append_accuracy(path_, {entry(110)}).has_value());
  const auto all = read_accuracy(path_, 10);
  ASSERT_TRUE(all.has_value()) << all.error().text();
  ASSERT_EQ(all->size(), 3u);
  EXPECT_DOUBLE_EQ((*all)[0].fact, 95);
  EXPECT_EQ((*all)[1].model, entry(1).model);
  EXPECT_EQ((*all)[2].threads, 2);
  EXPECT_TRUE((*all)[0].within());
  EXPECT_FALSE((*all)[1].within());
  EXPECT_NEAR((*all)[2].error(), 100.0 / 110 - 1, 1e-12);
  EXPECT_EQ((*all)[2].date.size(), std::string("2026-11-28T15:34:30Z").size());
  const auto newest = read_accuracy(path_, 2);
  ASSERT_EQ(newest->size(), 2u);
  EXPECT_DOUBLE_EQ((*newest)[0].fact, 120);
  // Nothing but the log itself is left.
  EXPECT_EQ(std::distance(fs::directory_iterator(path_.parent_path()), fs::directory_iterator()),
            1);
}

TEST_F(AccuracyLog, GivesBackEveryField) {
  AccuracyEntry e = entry(95);
  e.device = "gpu";
  e.driver = "550.54";
  e.batch = std::int64_t{1} << 40;
  e.precision = "amp-bf16";
  e.figure = "peak memory";
  e.unit = "bytes";
  e.disturbed = true;
  ASSERT_TRUE(append_accuracy(path_, {e}).has_value());
  const AccuracyEntry back = read_accuracy(path_, 1)->front();
  for (const auto member : {&AccuracyEntry::date, &AccuracyEntry::model, &AccuracyEntry::machine,
                            &AccuracyEntry::device, &AccuracyEntry::stoker, &AccuracyEntry::torch,
                            &AccuracyEntry::driver, &AccuracyEntry::precision,
                            &AccuracyEntry::figure, &AccuracyEntry::unit, &AccuracyEntry::basis})
    EXPECT_EQ(back.*member, e.*member);
  EXPECT_EQ(back.batch, e.batch);
  EXPECT_DOUBLE_EQ(back.forecast, 100);
  EXPECT_DOUBLE_EQ(back.low, 90);
  EXPECT_DOUBLE_EQ(back.high, 115);
  EXPECT_TRUE(back.disturbed);
}

TEST_F(AccuracyLog, NothingToAddMakesAnEmptyLog) {
  ASSERT_TRUE(append_accuracy(path_, {}).has_value());
  EXPECT_TRUE(fs::exists(path_));
  EXPECT_TRUE(read_accuracy(path_, 10)->empty());
  EXPECT_TRUE(read_accuracy(path_, 0)->empty());
}

TEST_F(AccuracyLog, ADamagedLogIsSaidAndNotTouched) {
  fs::create_directories(path_.parent_path());
  const std::string junk(5000, 'x');
  ASSERT_TRUE(write_file(path_, junk).has_value());
  const auto added = append_accuracy(path_, {entry(95)});
  ASSERT_FALSE(added.has_value());
  EXPECT_NE(added.error().text().find("is damaged"), std::string::npos) << added.error().text();
  EXPECT_FALSE(read_accuracy(path_, 10).has_value());
  EXPECT_EQ(*read_file(path_, kMiB), junk);
}

TEST_F(AccuracyLog, ALockedLogIsSaid) {
  ASSERT_TRUE(append_accuracy(path_, {entry(95)}).has_value());
  const auto other = Database::open(path_, Database::Access::kWrite, {"a log", ""}).value();
  ASSERT_TRUE(other->execute("BEGIN EXCLUSIVE").has_value());
  const auto added = append_accuracy(path_, {entry(96)});
  other->rollback();
  ASSERT_FALSE(added.has_value());
  EXPECT_NE(added.error().text().find("in use by another process"), std::string::npos)
      << added.error().text();
  EXPECT_EQ(read_accuracy(path_, 10)->size(), 1u);
}

TEST_F(AccuracyLog, ANewerLogIsLeftAlone) {
  ASSERT_TRUE(append_accuracy(path_, {entry(95)}).has_value());
  const auto other = Database::open(path_, Database::Access::kWrite, {"a log", ""}).value();
  ASSERT_TRUE(other->set_schema(7).has_value());
  EXPECT_EQ(append_accuracy(path_, {entry(96)}).error().code, ErrorCode::kTooNew);
  EXPECT_EQ(read_accuracy(path_, 10).error().code, ErrorCode::kTooNew);
}

TEST_F(AccuracyLog, AFolderThatCannotBeMadeIsSaid) {
  fs::create_directories(folder_);
  ASSERT_TRUE(write_file(folder_ / "state", "a file").has_value());
  EXPECT_FALSE(append_accuracy(path_, {entry(95)}).has_value());
}

TEST_F(AccuracyLog, StandsInTheStateFolder) {
  const char* before = std::getenv("XDG_STATE_HOME");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("XDG_STATE_HOME", "/x/state", 1);
  EXPECT_EQ(accuracy_log_path(), "/x/state/stoker/accuracy.db");
  ::setenv("XDG_STATE_HOME", "relative", 1);  // the specification has it ignored
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') {
    EXPECT_EQ(accuracy_log_path(), fs::path(home) / ".local/state/stoker/accuracy.db");
  }
  if (before == nullptr) ::unsetenv("XDG_STATE_HOME");
  else ::setenv("XDG_STATE_HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace stoker
