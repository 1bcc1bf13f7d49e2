#include "evidence/training/accuracy_log.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "base/sqlite.h"

namespace stoker {
namespace fs = std::filesystem;
namespace {

/// Version of the log's table; a newer log is left alone.
constexpr int kSchema = 1;
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

constexpr DatabaseKind kKind{"an accuracy log", "move it away, and a new log is begun"};

void bind(Statement& s, const AccuracyEntry& e) {
  for (const std::string* value :
       {&e.date, &e.model, &e.machine, &e.device, &e.stoker, &e.torch, &e.driver})
    s.bind(*value);
  s.bind(e.batch).bind(e.threads).bind(e.precision).bind(e.figure).bind(e.unit);
  for (const double value : {e.forecast, e.low, e.high, e.fact}) s.bind(value);
  s.bind(e.basis).bind(e.disturbed ? 1 : 0).bind(e.within() ? 1 : 0);
}

AccuracyEntry entry_of(Statement& s) {
  AccuracyEntry e;
  for (std::string* value :
       {&e.date, &e.model, &e.machine, &e.device, &e.stoker, &e.torch, &e.driver})
    *value = s.text();
  e.batch = s.integer();
  e.threads = static_cast<int>(s.integer());
  e.precision = s.text();
  e.figure = s.text();
  e.unit = s.text();
  for (double* value : {&e.forecast, &e.low, &e.high, &e.fact}) *value = s.number();
  e.basis = s.text();
  e.disturbed = s.integer() != 0;
  return e;
}

Status insert_all(const Database& database, const std::vector<AccuracyEntry>& entries) {
  auto statement =
      TRY(database.prepare("INSERT INTO accuracy (" + std::string(kColumns) +
                           ", within) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  for (const AccuracyEntry& entry : entries) {
    bind(statement, entry);
    TRY(statement.run());
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
  const auto database = TRY(Database::open(path, Database::Access::kCreate, kKind));
  const auto schema = TRY(database->schema(kSchema));
  TRY(database->execute("BEGIN IMMEDIATE"));
  Status done = database->execute(kTable);
  if (done && schema < kSchema) done = database->set_schema(kSchema);
  if (done) done = insert_all(*database, entries);
  if (done) done = database->execute("COMMIT");
  if (!done) database->rollback();
  return done;
}

Result<std::vector<AccuracyEntry>> read_accuracy(const fs::path& path, std::size_t at_most) {
  std::vector<AccuracyEntry> entries;
  std::error_code error;
  if (!fs::exists(path, error)) return entries;
  const auto database = TRY(Database::open(path, Database::Access::kRead, kKind));
  const auto schema = TRY(database->schema(kSchema));
  if (schema == 0) return entries;
  auto statement =
      TRY(database->prepare("SELECT " + std::string(kColumns) +
                            " FROM accuracy ORDER BY id DESC LIMIT " + std::to_string(at_most)));
  while (TRY(statement.step())) entries.push_back(entry_of(statement));
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
