#include "base/sqlite.h"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace stoker {
namespace {

constexpr int kPatienceMs = 2000;

int patience_ms(Database::Access access, const DatabaseKind& kind) {
  const char* seconds = std::getenv("STOKER_DATABASE_PATIENCE");
  if (seconds != nullptr)
    return static_cast<int>(std::clamp(std::strtod(seconds, nullptr), 0.0, 1e5) * 1000);
  return access == Database::Access::kRead ? kPatienceMs : kind.writers_patience_ms;
}

/// A file that may be read but not written, in a folder where SQLite may not keep its own files
/// beside it, can be read only as one that nobody changes: not where a log of changes lies beside
/// it, whose content would be passed over.
bool only_readable(const std::filesystem::path& path) {
  std::error_code error;
  const auto log = std::filesystem::file_size(path.string() + "-wal", error);
  return access(path.c_str(), R_OK) == 0 && access(path.parent_path().c_str(), W_OK) != 0 &&
         (error || log == 0);
}

/// What to do where SQLite refuses for a reason that lies outside of the file's content.
std::string cure_of(int code) {
  switch (code) {
    case SQLITE_FULL:
      return "; make room on its disk and do the same again: what was written is whole";
    case SQLITE_READONLY:
      return "; it and its folder need write permission";
    case SQLITE_CANTOPEN:
      return "; its folder has to exist, and to allow the log that SQLite keeps beside a file that "
             "is being written (-wal, -shm)";
    case SQLITE_IOERR:
      return "; see whether its disk or shared folder is there, and do the same again: what was "
             "written is whole";
    default:
      return "";
  }
}

std::string uri_of(const std::filesystem::path& path) {
  std::string text = "file:";
  for (const char c : path.string()) {
    if (c == '?' || c == '#' || c == '%') {
      constexpr char kHex[] = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      text += {'%', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      text += c;
    }
  }
  return text + "?immutable=1";
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Statement& Statement::bind(std::string_view text) {
  sqlite3_bind_text(statement_.get(), ++bound_, text.data() == nullptr ? "" : text.data(),
                    static_cast<int>(text.size()), SQLITE_TRANSIENT);
  return *this;
}
Statement& Statement::bind(std::int64_t number) {
  sqlite3_bind_int64(statement_.get(), ++bound_, number);
  return *this;
}
Statement& Statement::bind(double number) {
  sqlite3_bind_double(statement_.get(), ++bound_, number);
  return *this;
}
Statement& Statement::bind(const std::optional<double>& number) {
  return number ? bind(*number) : bind_null();
}
Statement& Statement::bind(const std::optional<std::int64_t>& number) {
  return number ? bind(*number) : bind_null();
}
Statement& Statement::bind_null() {
  sqlite3_bind_null(statement_.get(), ++bound_);
  return *this;
}

Result<bool> Statement::step() {
  column_ = 0;
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->refused();
}

Status Statement::run() {
  const auto row = step();
  reset();
  if (!row) return tl::unexpected(row.error());
  return {};
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bound_ = 0;
}

std::string Statement::text() {
  const int column = column_++;
  const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (value == nullptr) return {};
  return {value, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}
std::int64_t Statement::integer() { return sqlite3_column_int64(statement_.get(), column_++); }
double Statement::number() { return sqlite3_column_double(statement_.get(), column_++); }
std::optional<double> Statement::maybe_number() {
  if (sqlite3_column_type(statement_.get(), column_) == SQLITE_NULL) {
    ++column_;
    return std::nullopt;
  }
  return number();
}
std::optional<std::int64_t> Statement::maybe_integer() {
  if (sqlite3_column_type(statement_.get(), column_) == SQLITE_NULL) {
    ++column_;
    return std::nullopt;
  }
  return integer();
}

Result<std::unique_ptr<Database>> Database::open(const std::filesystem::path& path, Access access,
                                                 const DatabaseKind& kind) {
  std::unique_ptr<Database> database(new Database(path, kind));
  const bool frozen = access == Access::kRead && only_readable(std::filesystem::absolute(path));
  int flags = access == Access::kRead     ? SQLITE_OPEN_READONLY
              : access == Access::kCreate ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                          : SQLITE_OPEN_READWRITE;
  if (frozen) flags |= SQLITE_OPEN_URI;
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2((frozen ? uri_of(path) : path.string()).c_str(), &raw, flags, nullptr);
  database->database_.reset(raw);
  if (code != SQLITE_OK) return database->refused();
  sqlite3_busy_timeout(raw, patience_ms(access, kind));
  return database;
}

tl::unexpected<Error> Database::refused() const {
  sqlite3* raw = database_.get();
  const int code = raw == nullptr ? SQLITE_NOMEM : sqlite3_errcode(raw);
  const std::string why = raw == nullptr ? "out of memory" : sqlite3_errmsg(raw);
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
    return fail(ErrorCode::kIo, "is in use by another process (" + why + "); run again later",
                path_.string());
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
    return fail(ErrorCode::kBadInput, "is damaged (" + why + "); " + std::string(kind_.cure),
                path_.string());
  return fail(ErrorCode::kIo,
              "cannot be used as " + std::string(kind_.name) + " (" + why + ")" + cure_of(code),
              path_.string());
}

Status Database::execute(const std::string& sql) const {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return refused();
}

Result<Statement> Database::prepare(const std::string& sql) const {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK)
    return refused();
  Statement statement;
  statement.statement_.reset(raw);
  statement.database_ = this;
  return statement;
}

Result<int> Database::schema(int newest) const {
  auto statement = TRY(prepare("PRAGMA user_version"));
  const bool row = TRY(statement.step());
  if (!row) return refused();
  const int version = static_cast<int>(statement.integer());
  if (version <= newest) return version;
  return fail(ErrorCode::kTooNew,
              "is of schema " + std::to_string(version) + ", newer than this stoker knows (" +
                  std::to_string(newest) + "); update stoker",
              path_.string());
}

Status Database::set_schema(int version) const {
  return execute("PRAGMA user_version = " + std::to_string(version));
}

void Database::rollback() const {
  sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}
std::int64_t Database::last_id() const { return sqlite3_last_insert_rowid(database_.get()); }
int Database::changes() const { return sqlite3_changes(database_.get()); }

}  // namespace stoker
