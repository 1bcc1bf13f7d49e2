#include "evidence/training/accuracy_log.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>

namespace stoker {
namespace fs = std::filesystem;
namespace {

/// Version of the log's table; a newer log is left alone.
constexpr int kSchema = 1;
constexpr int kPatienceMs = 2000;
constexpr const char* kTable =
    "CREATE TABLE IF NOT EXISTS accuracy ("
    "id INTEGER PRIMARY KEY, date TEXT NOT NULL, model TEXT NOT NULL, machine TEXT NOT NULL, "
    "device TEXT NOT NULL, stoker TEXT NOT NULL, torch TEXT NOT NULL, driver TEXT NOT NULL, "
    "batch INTEGER NOT NULL, threads INTEGER NOT NULL, precision TEXT NOT NULL, "
    "figure TEXT NOT NULL, unit TEXT NOT NULL, forecast REAL NOT NULL, low REAL NOT NULL, "
    "high REAL NOT NULL, fact REAL NOT NULL, within INTEGER NOT NULL, basis TEXT NOT NULL, "
    "disturbed INTEGER NOT NULL)";
constexpr const char* kColumns =
    "date, model, machine, device, stoker, torch, driver, batch, threads, precision, figure, unit, "
    "forecast, low, high, fact, basis, disturbed";

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, Close>;
using Statement = std::unique_ptr<sqlite3_stmt, Close>;

tl::unexpected<Error> refused(sqlite3* database, const fs::path& path) {
  const int code = database == nullptr ? SQLITE_NOMEM : sqlite3_errcode(database);
  std::string why = database == nullptr ? "out of memory" : sqlite3_errmsg(database);
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
    return fail(ErrorCode::kIo, "is in use by another process (" + why + "); run again later",
                path.string());
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
    return fail(ErrorCode::kBadInput,
                "is damaged (" + why + "); move it away, and a new log is begun", path.string());
  return fail(ErrorCode::kIo, "cannot be used as an accuracy log (" + why + ")", path.string());
}

Result<Database> opened(const fs::path& path, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Database database(raw);
  if (code != SQLITE_OK) return refused(database.get(), path);
  sqlite3_busy_timeout(database.get(), kPatienceMs);
  return database;
}

Status execute(sqlite3* database, const std::string& sql, const fs::path& path) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return refused(database, path);
}

Result<Statement> prepared(sqlite3* database, const std::string& sql, const fs::path& path) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(database, sql.c_str(), -1, &raw, nullptr) != SQLITE_OK)
    return refused(database, path);
  return Statement(raw);
}

/// 0: a new file.
Result<int> schema_of(sqlite3* database, const fs::path& path) {
  const auto statement = TRY(prepared(database, "PRAGMA user_version", path));
  if (sqlite3_step(statement.get()) != SQLITE_ROW) return refused(database, path);
  const int version = sqlite3_column_int(statement.get(), 0);
  if (version <= kSchema) return version;
  return fail(ErrorCode::kTooNew,
              "is of schema " + std::to_string(version) + ", newer than this stoker knows (" +
                  std::to_string(kSchema) + "); update stoker",
              path.string());
}

void bind(sqlite3_stmt* s, const AccuracyEntry& e) {
  int at = 0;
  const auto text = [&](const std::string& value) {
    sqlite3_bind_text(s, ++at, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  };
  const auto integer = [&](std::int64_t value) { sqlite3_bind_int64(s, ++at, value); };
  const auto number = [&](double value) { sqlite3_bind_double(s, ++at, value); };
  for (const std::string* value :
       {&e.date, &e.model, &e.machine, &e.device, &e.stoker, &e.torch, &e.driver})
    text(*value);
  integer(e.batch);
  integer(e.threads);
  text(e.precision);
  text(e.figure);
  text(e.unit);
  for (const double value : {e.forecast, e.low, e.high, e.fact}) number(value);
  text(e.basis);
  integer(e.disturbed ? 1 : 0);
  integer(e.within() ? 1 : 0);
}

AccuracyEntry entry_of(sqlite3_stmt* s) {
  int at = 0;
  const auto text = [&]() -> std::string {
    const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(s, at++));
    return value == nullptr ? std::string() : std::string(value);
  };
  const auto number = [&] { return sqlite3_column_double(s, at++); };
  const auto integer = [&] { return sqlite3_column_int64(s, at++); };
  AccuracyEntry e;
  for (std::string* value :
       {&e.date, &e.model, &e.machine, &e.device, &e.stoker, &e.torch, &e.driver})
    *value = text();
  e.batch = integer();
  e.threads = static_cast<int>(integer());
  e.precision = text();
  e.figure = text();
  e.unit = text();
  for (double* value : {&e.forecast, &e.low, &e.high, &e.fact}) *value = number();
  e.basis = text();
  e.disturbed = integer() != 0;
  return e;
}

Status insert_all(sqlite3* database, const std::vector<AccuracyEntry>& entries,
                  const fs::path& path) {
  const auto statement =
      TRY(prepared(database,
                   "INSERT INTO accuracy (" + std::string(kColumns) +
                       ", within) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                   path));
  for (const AccuracyEntry& entry : entries) {
    bind(statement.get(), entry);
    if (sqlite3_step(statement.get()) != SQLITE_DONE) return refused(database, path);
    sqlite3_reset(statement.get());
  }
  return {};
}

}  // namespace

fs::path accuracy_log_path() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return fs::path(state) / "stoker" / "accuracy.db";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return fs::path(home) / ".local" / "state" / "stoker" / "accuracy.db";
  return {};
}

Status append_accuracy(const fs::path& path, const std::vector<AccuracyEntry>& entries) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    return fail(ErrorCode::kIo, "cannot be made: " + error.message() + "; set XDG_STATE_HOME",
                path.parent_path().string());
  }
  const auto database = TRY(opened(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  sqlite3* db = database.get();
  const auto schema = TRY(schema_of(db, path));
  if (auto s = execute(db, "BEGIN IMMEDIATE", path); !s) return s;
  Status done = execute(db, kTable, path);
  if (done && schema < kSchema)
    done = execute(db, "PRAGMA user_version = " + std::to_string(kSchema), path);
  if (done) done = insert_all(db, entries, path);
  if (done) done = execute(db, "COMMIT", path);
  if (!done) sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
  return done;
}

Result<std::vector<AccuracyEntry>> read_accuracy(const fs::path& path, std::size_t at_most) {
  std::vector<AccuracyEntry> entries;
  std::error_code error;
  if (!fs::exists(path, error)) return entries;
  const auto database = TRY(opened(path, SQLITE_OPEN_READONLY));
  const auto schema = TRY(schema_of(database.get(), path));
  if (schema == 0) return entries;
  const auto statement =
      prepared(database.get(),
               "SELECT " + std::string(kColumns) + " FROM accuracy ORDER BY id DESC LIMIT " +
                   std::to_string(at_most),
               path);
  if (!statement) return tl::unexpected(statement.error());
  int code = SQLITE_OK;
  while ((code = sqlite3_step(statement->get())) == SQLITE_ROW)
    entries.push_back(entry_of(statement->get()));
  if (code != SQLITE_DONE) return refused(database.get(), path);
  std::ranges::reverse(entries);
  return entries;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace stoker
