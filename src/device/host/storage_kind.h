#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "device/machine.h"

namespace stoker {

/// Storage as one host sees it, by its kind: what stands in where nobody measured it.
struct StorageFigures {
  std::string_view name;   ///< as it is typed
  std::string_view words;  ///< for people, with what the figures are taken from
  double bandwidth = 0;    ///< bytes/s of the host, many readers
  double reads = 0;        ///< files/s of the host, many readers
  double open_ms = 0;      ///< one reader: opening and reading a file, without its bytes
  double one_reader = 0;   ///< bytes/s of one reader
};

[[nodiscard]] std::span<const StorageFigures> storage_kinds();
/// Refuses a name that is none, with those that are.
[[nodiscard]] Result<const StorageFigures*> storage_kind_named(std::string_view typed);

/// The kind's bandwidth and reads where the host does not have its own (disk=, iops=); its
/// `assumption` says which figures were taken.
void fill_storage(const StorageFigures& kind, Host& host);

}  // namespace stoker
