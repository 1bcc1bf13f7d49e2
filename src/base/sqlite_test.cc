#include "base/sqlite.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

namespace fs = std::filesystem;
using Access = Database::Access;

constexpr DatabaseKind kLog{"an accuracy log", "move it away, and a new log is begun"};

class SqliteTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "stoker-sqlite-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = folder_ / "log.db";
    ::setenv("STOKER_DATABASE_PATIENCE", "0", 1);
  }
  void TearDown() override {
    ::unsetenv("STOKER_DATABASE_PATIENCE");
    fs::remove_all(folder_);
  }
  [[nodiscard]] std::unique_ptr<Database> opened(Access access) const {
    auto database = Database::open(path_, access, kLog);
    EXPECT_TRUE(database) << database.error().text();
    return std::move(database).value();
  }
  /// A table of one text, two numbers and what may be missing.
  [[nodiscard]] std::unique_ptr<Database> made() const {
    auto database = opened(Access::kCreate);
    EXPECT_TRUE(database->execute("CREATE TABLE t (a TEXT, b INTEGER, c REAL, d REAL)"));
    return database;
  }

  fs::path folder_, path_;
};

TEST_F(SqliteTest, ValuesComeBackAsTheyWereBound) {
  const auto database = made();
  Statement insert = database->prepare("INSERT INTO t VALUES (?, ?, ?, ?)").value();
  const std::string odd("a\0b'; DROP TABLE t; --\n\xC3\xA4", 26);
  ASSERT_TRUE(insert.bind(odd).bind(std::int64_t{1} << 62).bind(0.1).bind_null().run());
  EXPECT_EQ(database->last_id(), 1);
  ASSERT_TRUE(insert.bind("").bind(-3).bind(std::optional<double>(2.5)).bind(4.0).run());
  EXPECT_EQ(database->changes(), 1);
  Statement select = database->prepare("SELECT a, b, c, d FROM t ORDER BY rowid").value();
  ASSERT_TRUE(select.step().value());
  EXPECT_EQ(select.text(), odd);
  EXPECT_EQ(select.integer(), std::int64_t{1} << 62);
  EXPECT_EQ(select.number(), 0.1);
  EXPECT_EQ(select.maybe_number(), std::nullopt);
  ASSERT_TRUE(select.step().value());
  EXPECT_EQ(select.text(), "");
  EXPECT_EQ(select.maybe_integer(), -3);
  EXPECT_EQ(select.maybe_number(), 2.5);
  EXPECT_EQ(select.maybe_number(), 4.0);
  EXPECT_FALSE(select.step().value()) << "there are two rows";
}

TEST_F(SqliteTest, WhatFailedIsUndoneByARollback) {
  const auto database = made();
  ASSERT_TRUE(database->execute("BEGIN; INSERT INTO t (b) VALUES (1)"));
  const Status failed = database->execute("INSERT INTO none VALUES (1)");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text(),
            path_.string() + ": cannot be used as an accuracy log (no such table: none)");
  EXPECT_FALSE(database->prepare("SELEC 1"));
  database->rollback();
  Statement count = database->prepare("SELECT count(*) FROM t").value();
  ASSERT_TRUE(count.step().value());
  EXPECT_EQ(count.integer(), 0);
}

TEST_F(SqliteTest, ANewerSchemaIsRefused) {
  const auto database = made();
  EXPECT_EQ(database->schema(3).value(), 0) << "of a new file";
  ASSERT_TRUE(database->set_schema(4));
  EXPECT_EQ(database->schema(4).value(), 4);
  const auto newer = database->schema(3);
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::kTooNew);
  EXPECT_EQ(newer.error().text(),
            path_.string() + ": is of schema 4, newer than this stoker knows (3); update stoker");
}

TEST_F(SqliteTest, AFileThatIsNoneNamesItsCure) {
  std::ofstream(path_) << std::string(5000, 'x');
  const Status said = opened(Access::kWrite)->execute("CREATE TABLE t (a)");
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(said.error().text(),
            path_.string() +
                ": is damaged (file is not a database); move it away, and a new log is begun");
}

TEST_F(SqliteTest, AFolderThatIsNotThereIsNamed) {
  const auto database = Database::open(folder_ / "none" / "log.db", Access::kCreate, kLog);
  ASSERT_FALSE(database);
  EXPECT_TRUE(database.error().text().ends_with(
      "cannot be used as an accuracy log (unable to open database file); its folder has to exist, "
      "and to allow the log that SQLite keeps beside a file that is being written (-wal, -shm)"))
      << database.error().text();
  EXPECT_FALSE(Database::open(path_, Access::kWrite, kLog)) << "only kCreate makes a file";
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(SqliteTest, AnotherWriterIsWaitedForAndThenNamed) {
  const auto one = made(), two = opened(Access::kWrite);
  ASSERT_TRUE(one->execute("BEGIN IMMEDIATE"));
  const Status busy = two->execute("INSERT INTO t (b) VALUES (1)");
  ASSERT_FALSE(busy);
  EXPECT_EQ(
      busy.error().text(),
      path_.string() + ": is in use by another process (database is locked); run again later");
  ASSERT_TRUE(one->execute("COMMIT"));
  EXPECT_TRUE(two->execute("INSERT INTO t (b) VALUES (1)"));
}

TEST_F(SqliteTest, AReaderCannotWrite) {
  made().reset();
  const Status said = opened(Access::kRead)->execute("INSERT INTO t (b) VALUES (1)");
  ASSERT_FALSE(said);
  EXPECT_TRUE(said.error().text().ends_with("; it and its folder need write permission"))
      << said.error().text();
}

}  // namespace
}  // namespace stoker
