#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "json/value.h"

namespace stoker::json {

/// Largest believable values, so that sums stay finite: a day for a time, 2^53 for a count.
inline constexpr double kMaxMs = 86'400'000, kMaxUs = 1e3 * kMaxMs, kMaxCount = 9007199254740992.0,
                        kMaxRate = 1e15;

/// A file format of ours: what stands in "format", and the major version in "schema_version" that
/// this program reads.
struct Format {
  std::string_view name;  ///< "stoker-probe"
  int major = 1;
  std::string_view words;  ///< what the version counts: "probe format"
  /// What makes a file of this version: "probe the folder again"; empty: "update the older".
  std::string_view again = {};
  /// Said of a document of another kind; empty: "is no file of format NAME" and the cure.
  std::string_view otherwise = {};
};

/// Checks the fields of a document as they are read. The first that cannot be is kept with its path
/// ("runs[3].batch") and ends the reading: the values handed back from then on mean nothing. A path
/// that is passed in ends with a dot, or is empty at the top.
class Fields {
 public:
  /// `where`: the file; `cure`: what to do about a damaged one.
  Fields(std::string where, std::string cure) : where_(std::move(where)), cure_(std::move(cure)) {}

  [[nodiscard]] bool good() const { return !error_.has_value(); }
  [[nodiscard]] const Error& error() const { return *error_; }
  [[nodiscard]] Status status() const;
  [[nodiscard]] const std::string& where() const { return where_; }
  void refuse(const std::string& path, std::string_view why);

  /// Name and major version of the format, before anything else of the document is believed.
  [[nodiscard]] Status check_format(const Value& root, const Format& format);

  /// What must be there. A missing or wrong container reads as an empty one.
  const Value& object(const Value& parent, const char* key, const std::string& path);
  const Value& list(const Value& parent, const char* key, const std::string& path,
                    std::size_t at_most);
  double number(const Value& parent, const char* key, const std::string& path, double low,
                double high);
  /// A number without a fraction.
  std::int64_t whole(const Value& parent, const char* key, const std::string& path, double low,
                     double high);
  /// A number whose fraction, if any, is cut off.
  std::int64_t integer(const Value& parent, const char* key, const std::string& path, double low,
                       double high);
  bool flag(const Value& parent, const char* key, const std::string& path);
  std::string text(const Value& parent, const char* key, const std::string& path);

  /// What may be absent or null, for which it then stands: not measured, or empty.
  const Value& maybe_object(const Value& parent, const char* key, const std::string& path);
  const Value& maybe_list(const Value& parent, const char* key, const std::string& path,
                          std::size_t at_most);
  std::optional<double> maybe(const Value& parent, const char* key, const std::string& path,
                              double low, double high);
  double otherwise(const Value& parent, const char* key, const std::string& path, double low,
                   double high, double value);
  std::optional<Bytes> bytes(const Value& parent, const char* key, const std::string& path);
  std::string maybe_text(const Value& parent, const char* key, const std::string& path);
  bool flag(const Value& parent, const char* key, const std::string& path, bool otherwise_value);

  /// What may be absent or null and then leaves `out` as it is.
  void take(const Value& parent, const char* key, const std::string& path, double low, double high,
            double& out);
  void take(const Value& parent, const char* key, const std::string& path, double low, double high,
            std::int64_t& out);
  void take(const Value& parent, const char* key, const std::string& path, Nanos& out);  ///< of ms
  void take(const Value& parent, const char* key, const std::string& path, Bytes& out);
  void take(const Value& parent, const char* key, const std::string& path, bool& out);
  void take(const Value& parent, const char* key, const std::string& path, std::string& out);

  /// A value that is at hand: an element of a list, a member whose name is data.
  double checked(const Value& value, const std::string& path, double low, double high);

 private:
  const Value* required(const Value& parent, const char* key, const std::string& path);

  std::string where_, cure_;
  std::optional<Error> error_;
};

/// The member, unless it is absent or null.
[[nodiscard]] const Value* given(const Value& parent, const char* key);

/// "runs[3]."
[[nodiscard]] std::string indexed(const std::string& path, const char* key, std::size_t index);

}  // namespace stoker::json
