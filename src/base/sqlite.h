#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace stoker {

/// How errors speak of a database file.
struct DatabaseKind {
  std::string_view name;  ///< "an accuracy log"
  std::string_view
      cure;  ///< what to do about a damaged one: "move it away, and a new log is begun"
  /// How long a writer waits for another process; $STOKER_DATABASE_PATIENCE (seconds) goes first.
  int writers_patience_ms = 2000;
};

class Database;

/// A prepared statement: bind in order, step through rows, read columns in order. Borrows its
/// database. For one thread.
class Statement {
 public:
  Statement& bind(std::string_view text);
  Statement& bind(const char* text) { return bind(std::string_view(text)); }
  Statement& bind(const std::string& text) { return bind(std::string_view(text)); }
  Statement& bind(std::int64_t number);
  Statement& bind(int number) { return bind(static_cast<std::int64_t>(number)); }
  Statement& bind(double number);
  Statement& bind(const std::optional<double>& number);
  Statement& bind(const std::optional<std::int64_t>& number);
  Statement& bind_null();

  /// True: there is a row to read.
  [[nodiscard]] Result<bool> step();
  /// Steps through a statement that has no rows and makes it ready to be bound again.
  [[nodiscard]] Status run();
  void reset();

  /// The columns of a row, from the left; each call reads the next.
  [[nodiscard]] std::string text();
  [[nodiscard]] std::int64_t integer();
  [[nodiscard]] double number();
  [[nodiscard]] std::optional<double> maybe_number();
  [[nodiscard]] std::optional<std::int64_t> maybe_integer();

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  const Database* database_ = nullptr;
  int bound_ = 0, column_ = 0;
};

/// One SQLite file. Errors name it, what SQLite says of it, and the cure. For one thread; several
/// processes may have one file open. It must not move while statements live.
class Database {
 public:
  enum class Access : std::uint8_t { kRead, kWrite, kCreate };

  [[nodiscard]] static Result<std::unique_ptr<Database>> open(const std::filesystem::path& path,
                                                              Access access,
                                                              const DatabaseKind& kind);

  /// One or several statements without parameters or rows.
  [[nodiscard]] Status execute(const std::string& sql) const;
  [[nodiscard]] Result<Statement> prepare(const std::string& sql) const;
  /// The file's own version of its tables, 0 in a new file; refused when newer than `newest`.
  [[nodiscard]] Result<int> schema(int newest) const;
  [[nodiscard]] Status set_schema(int version) const;
  /// Ends a transaction that failed.
  void rollback() const;
  [[nodiscard]] std::int64_t last_id() const;
  /// Rows that the last statement changed.
  [[nodiscard]] int changes() const;
  [[nodiscard]] tl::unexpected<Error> refused() const;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  Database(std::filesystem::path path, const DatabaseKind& kind)
      : path_(std::move(path)), kind_(kind) {}
  struct Close {
    void operator()(sqlite3* database) const;
  };
  std::filesystem::path path_;
  DatabaseKind kind_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace stoker
