#include "study/store/store.h"

#include <chrono>

#include "base/sqlite.h"
#include "json/text.h"
#include "study/definition/study_json.h"
#include "study/store/schema.h"

namespace stoker::study {
namespace fs = std::filesystem;
namespace {

constexpr const char* kColumns =
    "id, axis_values, repetition, seed, state, cause, reason, job, exit_code, signal, retry_of, "
    "submitted, started, ended, wall_s, host, tail";

std::string values_text(const std::vector<std::string>& values) {
  return json::Value(values).dump();
}

std::vector<std::string> values_from(const std::string& text) {
  std::vector<std::string> values;
  const auto parsed = json::parse(text);
  if (!parsed) return values;
  for (const json::Value& value : *parsed) values.push_back(value.as_string());
  return values;
}

TrialRow row_of(Statement& s) {
  TrialRow row;
  row.id = s.integer();
  row.trial.values = values_from(s.text());
  row.trial.repetition = s.integer();
  row.trial.seed = s.integer();
  row.state = state_named(s.text()).value_or(TrialState::kFailed);
  row.cause = s.text();
  row.reason = s.text();
  row.job = s.text();
  row.exit_code = s.maybe_integer();
  row.signal = s.maybe_integer();
  row.retry_of = s.maybe_integer();
  row.submitted = s.maybe_number();
  row.started = s.maybe_number();
  row.ended = s.maybe_number();
  row.wall_s = s.maybe_number();
  row.host = s.text();
  row.tail = s.text();
  return row;
}

Status insert_trials(const Database& database, const std::vector<TrialValues>& trials) {
  auto statement = TRY(database.prepare(
      "INSERT INTO trials (axis_values, repetition, seed, state) VALUES (?, ?, ?, 'waiting')"));
  for (const TrialValues& trial : trials) {
    statement.bind(values_text(trial.values)).bind(trial.repetition).bind(trial.seed);
    TRY(statement.run());
  }
  return {};
}

Status insert_figures(const Database& database, std::int64_t id, const char* kind,
                      const std::map<std::string, double>& figures) {
  auto statement = TRY(database.prepare("INSERT INTO figures VALUES (?, ?, ?, ?)"));
  for (const auto& [name, value] : figures) {
    statement.bind(id).bind(kind).bind(name).bind(value);
    TRY(statement.run());
  }
  return {};
}

Status insert_points(const Database& database, std::int64_t id,
                     const std::vector<MetricPoint>& points) {
  auto statement = TRY(database.prepare("INSERT INTO points VALUES (?, ?, ?, ?, ?)"));
  for (const MetricPoint& point : points) {
    statement.bind(id).bind(point.metric).bind(point.step).bind(point.seconds).bind(point.value);
    TRY(statement.run());
  }
  return {};
}

std::string with_reason(std::string what, const std::string& reason) {
  return reason.empty() ? what : what + ": " + reason;
}

}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Store::Store(fs::path path, std::unique_ptr<Database> database)
    : path_(std::move(path)), database_(std::move(database)) {}
Store::Store(Store&&) noexcept = default;
Store::~Store() = default;

Result<bool> Store::exists(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  const auto database = TRY(Database::open(path, Database::Access::kRead, kStoreKind));
  if (TRY(database->schema(kSchema)) != 0) return true;
  auto tables = TRY(database->prepare("SELECT 1 FROM sqlite_master"));
  return TRY(tables.step());
}

Result<Store> Store::create(const fs::path& path, const Study& study,
                            const std::vector<TrialValues>& trials) {
  Store store(path, TRY(Database::open(path, Database::Access::kCreate, kStoreKind)));
  const Database& database = *store.database_;
  // NORMAL in a write-ahead log survives the death of any process; a power cut may cost the last
  // changes, which the trials' own result files then tell again.
  TRY(database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"));
  TRY(store.transaction([&]() -> Status {
    if (const int version = TRY(database.schema(kSchema)); version != 0)
      return fail(ErrorCode::kBadInput, "holds a study already", path.string());
    TRY(make_tables(database));
    TRY(store.note("definition", study_json(study).dump()));
    TRY(store.note("created", std::to_string(now_seconds())));
    return insert_trials(database, trials);
  }));
  store.study_ = study;
  return store;
}

Result<Store> Store::open(const fs::path& path, Access access) {
  std::error_code error;
  if (!fs::exists(path, error))
    return fail(ErrorCode::kNotFound, "there is no such study", path.string());
  Store store(
      path, TRY(Database::open(
                path, access == Access::kRead ? Database::Access::kRead : Database::Access::kWrite,
                kStoreKind)));
  const int version = TRY(store.database_->schema(kSchema));
  TRY(migrate(*store.database_, version));
  if (access == Access::kWrite) TRY(store.database_->execute("PRAGMA synchronous = NORMAL"));
  TRY(store.load_study());
  return store;
}

Status Store::load_study() {
  const auto text = TRY(noted("definition"));
  const auto parsed = json::parse(text.value_or(""));
  if (!text || !parsed)
    return fail(ErrorCode::kBadInput, "holds no study: its definition is damaged", path_.string());
  study_ = TRY(study_from_json(*parsed, path_.string()));
  return {};
}

Status Store::transaction(const std::function<Status()>& work) const {
  TRY(database_->execute("BEGIN IMMEDIATE"));
  Status done = work();
  if (done) done = database_->execute("COMMIT");
  if (!done) database_->rollback();
  return done;
}

Status Store::event(std::int64_t trial, const std::string& what) const {
  auto statement =
      TRY(database_->prepare("INSERT INTO events (time, trial, what) VALUES (?, ?, ?)"));
  return statement.bind(now_seconds()).bind(trial).bind(what).run();
}

/// `set` are further columns with a ? for each of `values`; `from` the states that it may have.
Status Store::change(std::int64_t id, TrialState to, const std::string& from,
                     const std::string& set, const std::vector<std::string>& values,
                     const std::string& what) const {
  return transaction([&]() -> Status {
    auto statement = TRY(database_->prepare("UPDATE trials SET state = ?" + set +
                                            " WHERE id = ? AND state IN (" + from + ")"));
    statement.bind(name_of(to));
    for (const std::string& value : values) statement.bind(value);
    statement.bind(id);
    TRY(statement.run());
    if (database_->changes() != 1)
      return fail(ErrorCode::kBadInput,
                  "trial " + std::to_string(id) + " cannot become " + std::string(name_of(to)),
                  path_.string());
    return event(id, what);
  });
}

Result<std::int64_t> Store::add(const TrialValues& trial) {
  std::int64_t added = 0;
  TRY(transaction([&]() -> Status {
    TRY(insert_trials(*database_, {trial}));
    added = database_->last_id();
    return {};
  }));
  return added;
}

Status Store::submitted(std::int64_t id, const std::string& job) {
  return change(id, TrialState::kSubmitted, "'waiting'",
                ", submitted = " + std::to_string(now_seconds()) + ", job = ?", {job}, "submitted");
}

Status Store::named(std::int64_t id, const std::string& job) {
  auto statement = TRY(database_->prepare("UPDATE trials SET job = ? WHERE id = ?"));
  return statement.bind(job).bind(id).run();
}

Status Store::running(std::int64_t id, const std::string& host) {
  return change(id, TrialState::kRunning, "'waiting', 'submitted', 'paused'",
                ", started = " + std::to_string(now_seconds()) + ", host = ?", {host}, "running");
}

Status Store::withdrawn(std::int64_t id, const std::string& why) {
  return change(id, TrialState::kWaiting, "'submitted', 'running', 'paused'",
                ", submitted = NULL, started = NULL, host = '', job = ''", {},
                with_reason("waiting again", why));
}

Status Store::not_run(std::int64_t id, const std::string& reason, const std::string& cause) {
  return change(id, TrialState::kNotRun, "'waiting'", ", reason = ?, cause = ?", {reason, cause},
                with_reason("not_run", reason));
}

Status Store::forecast(std::int64_t id, const std::map<std::string, double>& figures) {
  return transaction([&] { return insert_figures(*database_, id, "forecast", figures); });
}

Status Store::corrected(std::int64_t id, const std::map<std::string, double>& figures) {
  if (figures.empty()) return {};
  return transaction([&]() -> Status {
    // A trial that was withdrawn and begins again is corrected by what is known by then.
    auto statement =
        TRY(database_->prepare("DELETE FROM figures WHERE trial = ? AND kind = 'corrected'"));
    TRY(statement.bind(id).run());
    return insert_figures(*database_, id, "corrected", figures);
  });
}

Status Store::ended(std::int64_t id, const TrialResult& r) {
  return transaction([&]() -> Status {
    auto statement = TRY(database_->prepare(
        "UPDATE trials SET state = ?, cause = ?, reason = ?, exit_code = ?, signal = ?, "
        "started = ?, ended = ?, wall_s = ?, host = ?, tail = ? WHERE id = ? AND state NOT IN "
        "('done', 'failed', 'timed_out', 'out_of_memory', 'cancelled', 'not_run')"));
    statement.bind(name_of(r.state)).bind(r.cause).bind(r.reason).bind(r.exit_code).bind(r.signal);
    statement.bind(r.started).bind(r.ended).bind(r.wall_s).bind(r.host).bind(r.tail).bind(id);
    TRY(statement.run());
    if (database_->changes() != 1)
      return fail(ErrorCode::kBadInput, "trial " + std::to_string(id) + " has ended already",
                  path_.string());
    TRY(insert_figures(*database_, id, "metric", r.metrics));
    TRY(insert_figures(*database_, id, "resource", r.resources));
    TRY(insert_points(*database_, id, r.points));
    return event(id, with_reason(std::string(name_of(r.state)), r.reason));
  });
}

Result<std::int64_t> Store::retry(std::int64_t id) {
  std::int64_t added = 0;
  TRY(transaction([&]() -> Status {
    auto statement = TRY(database_->prepare(
        "INSERT INTO trials (axis_values, repetition, seed, state, retry_of) SELECT axis_values, "
        "repetition, seed, 'waiting', id FROM trials WHERE id = ? AND state IN ('done', 'failed', "
        "'timed_out', 'out_of_memory', 'cancelled', 'not_run')"));
    TRY(statement.bind(id).run());
    if (database_->changes() != 1)
      return fail(ErrorCode::kBadInput, "trial " + std::to_string(id) + " has not ended",
                  path_.string());
    added = database_->last_id();
    return event(added, "runs trial " + std::to_string(id) + " again");
  }));
  return added;
}

Status Store::note(const std::string& key, const std::string& value) {
  auto statement = TRY(database_->prepare("INSERT OR REPLACE INTO study VALUES (?, ?)"));
  return statement.bind(key).bind(value).run();
}

Result<std::optional<std::string>> Store::noted(const std::string& key) const {
  auto statement = TRY(database_->prepare("SELECT value FROM study WHERE key = ?"));
  statement.bind(key);
  if (!TRY(statement.step())) return std::optional<std::string>();
  return std::optional(statement.text());
}

Result<std::map<TrialState, std::int64_t>> Store::counts() const {
  std::map<TrialState, std::int64_t> all;
  auto statement = TRY(database_->prepare("SELECT state, count(*) FROM trials GROUP BY state"));
  while (TRY(statement.step())) {
    const auto state = state_named(statement.text());
    if (state) all[*state] = statement.integer();
  }
  return all;
}

Result<std::vector<TrialRow>> Store::rows(const std::string& where) const {
  std::vector<TrialRow> all;
  auto statement = TRY(database_->prepare("SELECT " + std::string(kColumns) + " FROM trials " +
                                          where + " ORDER BY id"));
  while (TRY(statement.step())) all.push_back(row_of(statement));
  return all;
}

Result<std::vector<TrialRow>> Store::trials(std::optional<TrialState> state) const {
  return rows(state ? "WHERE state = '" + std::string(name_of(*state)) + "'" : "");
}

Result<TrialRow> Store::trial(std::int64_t id) const {
  auto found = TRY(rows("WHERE id = " + std::to_string(id)));
  if (found.empty())
    return fail(ErrorCode::kNotFound, "has no trial " + std::to_string(id), path_.string());
  return std::move(found.front());
}

Result<std::vector<TrialRow>> Store::full_trials() const {
  auto all = TRY(rows(""));
  auto statement = TRY(database_->prepare("SELECT trial, kind, name, value FROM figures"));
  while (TRY(statement.step())) {
    const auto id = static_cast<std::size_t>(statement.integer());
    const std::string kind = statement.text(), name = statement.text();
    if (id < 1 || id > all.size()) continue;
    TrialRow& row = all[id - 1];  // ids go from 1 without gaps: trials are never deleted
    auto& figures = kind == "metric"      ? row.metrics
                    : kind == "forecast"  ? row.forecast
                    : kind == "corrected" ? row.corrected
                                          : row.resources;
    figures[name] = statement.number();
  }
  return all;
}

Result<std::vector<MetricPoint>> Store::points(std::int64_t trial) const {
  std::vector<MetricPoint> all;
  auto statement = TRY(database_->prepare(
      "SELECT metric, step, seconds, value FROM points WHERE trial = ? ORDER BY rowid"));
  statement.bind(trial);
  while (TRY(statement.step())) {
    MetricPoint point;
    point.metric = statement.text();
    point.step = statement.maybe_number();
    point.seconds = statement.number();
    point.value = statement.number();
    all.push_back(std::move(point));
  }
  return all;
}

Result<std::map<std::int64_t, std::vector<MetricPoint>>> Store::curves(
    const std::string& metric) const {
  std::map<std::int64_t, std::vector<MetricPoint>> all;
  auto statement = TRY(database_->prepare(
      "SELECT trial, step, seconds, value FROM points WHERE metric = ? ORDER BY trial, seconds "
      "LIMIT 2000000"));
  statement.bind(metric);
  while (TRY(statement.step())) {
    const std::int64_t trial = statement.integer();
    MetricPoint point{metric};
    point.step = statement.maybe_number();
    point.seconds = statement.number();
    point.value = statement.number();
    all[trial].push_back(std::move(point));
  }
  return all;
}

Result<std::vector<StudyEvent>> Store::events() const {
  std::vector<StudyEvent> all;
  auto statement = TRY(database_->prepare("SELECT time, trial, what FROM events ORDER BY id"));
  while (TRY(statement.step()))
    all.push_back({statement.number(), statement.integer(), statement.text()});
  return all;
}

}  // namespace stoker::study
