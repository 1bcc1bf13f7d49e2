#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "input/probe/probe.h"

/// Internal to the probe file's reader.
namespace stoker::probe_json {

using Json = nlohmann::ordered_json;

/// Largest believable values, to keep sums finite: a day for a time, 2^53 for a count.
inline constexpr double kMaxMs = 86'400'000, kMaxCount = 9007199254740992.0, kMaxRate = 1e15;

/// Walks the document; the first thing wrong is kept and ends the reading.
class Reader {
 public:
  explicit Reader(std::string where) : where_(std::move(where)) {}

  [[nodiscard]] bool good() const { return !error_.has_value(); }
  [[nodiscard]] Error error() const { return *error_; }

  void refuse(const std::string& field, const std::string& why) {
    if (good()) {
      error_ = Error{ErrorCode::kBadInput,
                     "field \"" + field + "\" " + why + "; probe the folder again", where_};
    }
  }

  const Json& child(const Json& parent, const char* key, const std::string& path) {
    static const Json kNothing = Json::object();
    if (good() && parent.is_object()) {
      const auto found = parent.find(key);
      if (found != parent.end()) {
        if (found->is_object()) return *found;
        refuse(path + key, "is not an object");
        return kNothing;
      }
    }
    refuse(path + key, "is missing");
    return kNothing;
  }

  /// A list; empty when it is missing.
  const Json& list(const Json& parent, const char* key, const std::string& path,
                   std::size_t at_most) {
    static const Json kNothing = Json::array();
    const auto found = parent.find(key);
    if (found == parent.end()) return kNothing;
    if (!found->is_array()) return refuse(path + key, "is not a list"), kNothing;
    if (found->size() > at_most) return refuse(path + key, "is impossibly long"), kNothing;
    return *found;
  }

  double number(const Json& parent, const char* key, const std::string& path, double low,
                double high) {
    const auto found = parent.find(key);
    if (found == parent.end()) return refuse(path + key, "is missing"), low;
    return checked(*found, path + key, low, high);
  }

  std::int64_t integer(const Json& parent, const char* key, const std::string& path, double low,
                       double high) {
    return static_cast<std::int64_t>(number(parent, key, path, low, high));
  }

  bool flag(const Json& parent, const char* key, const std::string& path) {
    const auto found = parent.find(key);
    if (found == parent.end() || !found->is_boolean())
      return refuse(path + key, "is not true or false"), false;
    return found->get<bool>();
  }

  std::string text(const Json& parent, const char* key, const std::string& path) {
    const auto found = parent.find(key);
    if (found == parent.end() || !found->is_string())
      return refuse(path + key, "is not a text"), "";
    return found->get<std::string>();
  }

  double checked(const Json& value, const std::string& field, double low, double high) {
    if (!value.is_number()) return refuse(field, "is not a number"), low;
    const auto number = value.get<double>();
    if (!(number >= low)) return refuse(field, number < 0 ? "is negative" : "is too small"), low;
    if (!(number <= high)) return refuse(field, "is impossibly large"), low;
    return number;
  }

  Spread spread(const Json& parent, const char* key, const std::string& path) {
    const Json& json = child(parent, key, path);
    const std::string here = path + key + ".";
    Spread out;
    out.mean = number(json, "mean", here, 0, kMaxMs);
    out.median = number(json, "median", here, 0, kMaxMs);
    out.sd = number(json, "sd", here, 0, kMaxMs);
    out.p95 = number(json, "p95", here, 0, kMaxMs);
    if (good() && out.median > out.p95)
      refuse(path + key, "contradicts itself: its median exceeds its p95");
    return out;
  }

 private:
  std::string where_;
  std::optional<Error> error_;
};

}  // namespace stoker::probe_json
