#pragma once

#include "base/result.h"
#include "base/sqlite.h"

/// Internal to src/study/store: the tables of a study, documented in docs/reference/study-store.md.
namespace stoker::study {

inline constexpr int kSchema = 1;
inline constexpr DatabaseKind kStoreKind{
    "a study", "trials that ended are in the folders beside it, each with its result.json",
    30'000};  // a backup or a shell may hold the file for a while, and a study should outlast it

/// Makes the tables of a new study, within a transaction.
[[nodiscard]] Status make_tables(const Database& database);

/// Brings the tables of an older version up to date, each version in a transaction of its own.
[[nodiscard]] Status migrate(const Database& database, int from);

}  // namespace stoker::study
