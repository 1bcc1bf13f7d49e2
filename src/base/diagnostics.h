#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

enum class Severity { kNote, kWarning };

/// One kind of thing that was odd about the data: counted, never fatal.
struct Diagnostic {
  std::string name;  ///< stable identifier, snake_case: `uncosted_operator`
  Severity severity = Severity::kNote;
  std::string advice;  ///< one sentence for people
  std::int64_t count = 0;
};

/// Named counters of data problems, printed at the end of a report and written into the JSON.
class Diagnostics {
 public:
  void add(std::string_view name, Severity severity, std::string_view advice,
           std::int64_t count = 1);
  void merge(const Diagnostics& other);
  [[nodiscard]] const std::vector<Diagnostic>& all() const { return all_; }
  [[nodiscard]] std::int64_t count(std::string_view name) const;
  [[nodiscard]] bool empty() const { return all_.empty(); }

 private:
  std::vector<Diagnostic> all_;
};

}  // namespace stoker
