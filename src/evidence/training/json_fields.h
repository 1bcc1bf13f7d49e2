#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/units.h"

/// Internal to src/validate.
namespace stoker {

/// Largest believable values, so that sums stay finite: a day for a time, 2^53 for a count.
inline constexpr double kMaxMs = 86'400'000, kMaxUs = 1e3 * kMaxMs, kMaxCount = 9007199254740992.0;

/// Walks the fields of a JSON document. What cannot be is kept with its path ("runs[3].batch") and ends
/// the reading; the values handed back from then on mean nothing.
class JsonFields {
 public:
  using Json = nlohmann::ordered_json;

  /// `where`: the file; `cure`: what to do about a damaged one.
  JsonFields(std::string where, std::string cure)
      : where_(std::move(where)), cure_(std::move(cure)) {}

  [[nodiscard]] bool good() const { return !error_.has_value(); }
  [[nodiscard]] Error error() const { return *error_; }

  void refuse(const std::string& path, const std::string& why) {
    if (good())
      error_ = Error{ErrorCode::kBadInput, "field \"" + path + "\" " + why + "; " + cure_, where_};
  }

  /// `format` by name, and the major version; a newer one is said before anything else.
  void check_format(const Json& root, const std::string& format, int major) {
    if (!root.is_object() || text(root, "format", "") != format) {
      error_ = Error{ErrorCode::kBadInput, "is no file of format " + format + "; " + cure_, where_};
      return;
    }
    const Json& version = list(root, "schema_version", "", 2);
    if (version.size() != 2 || !version[0].is_number_integer()) {
      refuse("schema_version", "is not [major, minor]");
    } else if (version[0].get<std::int64_t>() != major) {
      error_ = Error{ErrorCode::kTooNew,
                     "is of format " + version[0].dump() + ", and this stoker reads " +
                         std::to_string(major) + "; update the older of the two",
                     where_};
    }
  }

  /// An object; an empty one when it is absent or none.
  const Json& object(const Json& parent, const char* key, const std::string& path) {
    static const Json kNothing = Json::object();
    const Json* found = at(parent, key);
    if (found == nullptr) return refuse(path + key, "is missing"), kNothing;
    if (!found->is_object()) return refuse(path + key, "is not an object"), kNothing;
    return *found;
  }

  const Json& list(const Json& parent, const char* key, const std::string& path,
                   std::size_t at_most) {
    static const Json kNothing = Json::array();
    const Json* found = at(parent, key);
    if (found == nullptr) return refuse(path + key, "is missing"), kNothing;
    if (!found->is_array()) return refuse(path + key, "is not a list"), kNothing;
    if (found->size() > at_most) return refuse(path + key, "is impossibly long"), kNothing;
    return *found;
  }

  double number(const Json& parent, const char* key, const std::string& path, double low,
                double high) {
    const Json* found = at(parent, key);
    if (found == nullptr) return refuse(path + key, "is missing"), low;
    return checked(*found, path + key, low, high);
  }

  /// Absent or null: nothing was measured.
  std::optional<double> maybe(const Json& parent, const char* key, const std::string& path,
                              double low, double high) {
    const Json* found = at(parent, key);
    if (found == nullptr || found->is_null()) return std::nullopt;
    return checked(*found, path + key, low, high);
  }

  double otherwise(const Json& parent, const char* key, const std::string& path, double low,
                   double high, double value) {
    return maybe(parent, key, path, low, high).value_or(value);
  }

  std::optional<Bytes> bytes(const Json& parent, const char* key, const std::string& path) {
    const auto value = maybe(parent, key, path, 0, kMaxCount);
    if (!value) return std::nullopt;
    return Bytes(static_cast<std::int64_t>(*value));
  }

  std::string text(const Json& parent, const char* key, const std::string& path) {
    const Json* found = at(parent, key);
    if (found == nullptr || !found->is_string())
      return refuse(path + key, "is not a text"), std::string();
    return found->get<std::string>();
  }

  /// Absent or null: empty.
  std::string maybe_text(const Json& parent, const char* key, const std::string& path) {
    const Json* found = at(parent, key);
    if (found == nullptr || found->is_null()) return {};
    return text(parent, key, path);
  }

  bool flag(const Json& parent, const char* key, const std::string& path, bool otherwise_value) {
    const Json* found = at(parent, key);
    if (found == nullptr || found->is_null()) return otherwise_value;
    if (!found->is_boolean()) return refuse(path + key, "is not true or false"), otherwise_value;
    return found->get<bool>();
  }

  double checked(const Json& value, const std::string& path, double low, double high) {
    if (!value.is_number()) return refuse(path, "is not a number"), low;
    const auto number = value.get<double>();
    if (!(number >= low)) return refuse(path, number < 0 ? "is negative" : "is too small"), low;
    if (!(number <= high)) return refuse(path, "is impossibly large"), low;
    return number;
  }

 private:
  static const Json* at(const Json& parent, const char* key) {
    if (!parent.is_object()) return nullptr;
    const auto found = parent.find(key);
    return found == parent.end() ? nullptr : &*found;
  }

  std::string where_, cure_;
  std::optional<Error> error_;
};

/// "runs[3]."
[[nodiscard]] inline std::string indexed(const std::string& path, const char* key,
                                         std::size_t index) {
  return path + key + "[" + std::to_string(index) + "].";
}

}  // namespace stoker
