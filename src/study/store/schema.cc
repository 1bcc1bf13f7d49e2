#include "study/store/schema.h"

namespace stoker::study {
namespace {

constexpr const char* kTables = R"(
CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE trials (
  id INTEGER PRIMARY KEY,
  axis_values TEXT NOT NULL,
  repetition INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  state TEXT NOT NULL,
  cause TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '',
  job TEXT NOT NULL DEFAULT '',
  exit_code INTEGER, signal INTEGER, retry_of INTEGER REFERENCES trials(id),
  submitted REAL, started REAL, ended REAL, wall_s REAL,
  host TEXT NOT NULL DEFAULT '',
  tail TEXT NOT NULL DEFAULT '');
CREATE INDEX trials_by_state ON trials(state, id);
CREATE TABLE figures (
  trial INTEGER NOT NULL REFERENCES trials(id), kind TEXT NOT NULL, name TEXT NOT NULL,
  value REAL NOT NULL, PRIMARY KEY (trial, kind, name)) WITHOUT ROWID;
CREATE TABLE points (
  trial INTEGER NOT NULL REFERENCES trials(id), metric TEXT NOT NULL, step REAL,
  seconds REAL NOT NULL, value REAL NOT NULL);
CREATE INDEX points_by_trial ON points(trial);
CREATE TABLE events (
  id INTEGER PRIMARY KEY, time REAL NOT NULL, trial INTEGER NOT NULL, what TEXT NOT NULL);
CREATE TRIGGER final_states_stay BEFORE UPDATE OF state ON trials
  WHEN OLD.state IN ('done', 'failed', 'timed_out', 'out_of_memory', 'cancelled', 'not_run')
    AND NEW.state <> OLD.state
  BEGIN SELECT RAISE(ABORT, 'a final state never changes'); END;
CREATE TRIGGER trials_stay BEFORE DELETE ON trials
  BEGIN SELECT RAISE(ABORT, 'trials are never deleted'); END;
)";

}  // namespace

Status make_tables(const Database& database) {
  TRY(database.execute(kTables));
  return database.set_schema(kSchema);
}

Status migrate(const Database& database, int from) {
  if (from == kSchema) return {};
  return fail(ErrorCode::kBadInput,
              "is no study: it has none of its tables; give the file that "
              "stoker sweep wrote",
              database.path().string());
}

}  // namespace stoker::study
