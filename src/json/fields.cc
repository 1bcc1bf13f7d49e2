#include "json/fields.h"

#include <cmath>

namespace stoker::json {
namespace {

const Value& no_object() {
  static const Value kNone = Value::object();
  return kNone;
}

const Value& no_list() {
  static const Value kNone = Value::array();
  return kNone;
}

}  // namespace

const Value* given(const Value& parent, const char* key) {
  const Value* found = parent.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string indexed(const std::string& path, const char* key, std::size_t index) {
  return path + key + "[" + std::to_string(index) + "].";
}

Status Fields::status() const {
  if (error_) return tl::unexpected(*error_);
  return {};
}

void Fields::refuse(const std::string& path, std::string_view why) {
  if (error_) return;
  error_ = Error{ErrorCode::kBadInput, "field \"" + path + "\" " + std::string(why) + "; " + cure_,
                 where_};
}

Status Fields::check_format(const Value& root, const Format& format) {
  if (root["format"] != Value(format.name)) {
    error_ = Error{ErrorCode::kBadInput,
                   format.otherwise.empty()
                       ? "is no file of format " + std::string(format.name) + "; " + cure_
                       : std::string(format.otherwise),
                   where_};
    return status();
  }
  const Value& version = root["schema_version"];
  if (version.size() != 2 || !version[0].is_integer()) {
    refuse("schema_version", "is not [major, minor]");
  } else if (version[0] != Value(format.major)) {
    error_ = Error{ErrorCode::kTooNew,
                   "is of " + std::string(format.words) + " " + version[0].dump() +
                       ", this program reads " + std::to_string(format.major) + "; " +
                       (format.again.empty() ? "update the older of the two"
                                             : "update stoker or " + std::string(format.again)),
                   where_};
  }
  return status();
}

const Value* Fields::required(const Value& parent, const char* key, const std::string& path) {
  const Value* found = parent.find(key);
  if (found == nullptr) refuse(path + key, "is missing");
  return found;
}

const Value& Fields::object(const Value& parent, const char* key, const std::string& path) {
  const Value* found = required(parent, key, path);
  if (found == nullptr) return no_object();
  if (found->is_object()) return *found;
  refuse(path + key, "is not an object");
  return no_object();
}

const Value& Fields::list(const Value& parent, const char* key, const std::string& path,
                          std::size_t at_most) {
  const Value* found = required(parent, key, path);
  if (found == nullptr) return no_list();
  if (!found->is_array()) return refuse(path + key, "is not a list"), no_list();
  if (found->size() > at_most) return refuse(path + key, "is impossibly long"), no_list();
  return *found;
}

double Fields::number(const Value& parent, const char* key, const std::string& path, double low,
                      double high) {
  const Value* found = required(parent, key, path);
  return found == nullptr ? low : checked(*found, path + key, low, high);
}

std::int64_t Fields::whole(const Value& parent, const char* key, const std::string& path,
                           double low, double high) {
  const double value = number(parent, key, path, low, high);
  if (value != std::floor(value)) refuse(path + key, "is not a whole number");
  return static_cast<std::int64_t>(value);
}

std::int64_t Fields::integer(const Value& parent, const char* key, const std::string& path,
                             double low, double high) {
  return static_cast<std::int64_t>(number(parent, key, path, low, high));
}

bool Fields::flag(const Value& parent, const char* key, const std::string& path) {
  const Value* found = required(parent, key, path);
  if (found != nullptr && !found->is_bool()) refuse(path + key, "is not true or false");
  return found != nullptr && found->as_bool();
}

std::string Fields::text(const Value& parent, const char* key, const std::string& path) {
  const Value* found = required(parent, key, path);
  if (found != nullptr && !found->is_string()) refuse(path + key, "is not a text");
  return found == nullptr ? std::string() : found->as_string();
}

const Value& Fields::maybe_object(const Value& parent, const char* key, const std::string& path) {
  return given(parent, key) == nullptr ? no_object() : object(parent, key, path);
}

const Value& Fields::maybe_list(const Value& parent, const char* key, const std::string& path,
                                std::size_t at_most) {
  return given(parent, key) == nullptr ? no_list() : list(parent, key, path, at_most);
}

std::optional<double> Fields::maybe(const Value& parent, const char* key, const std::string& path,
                                    double low, double high) {
  const Value* found = given(parent, key);
  if (found == nullptr) return std::nullopt;
  return checked(*found, path + key, low, high);
}

double Fields::otherwise(const Value& parent, const char* key, const std::string& path, double low,
                         double high, double value) {
  return maybe(parent, key, path, low, high).value_or(value);
}

std::optional<Bytes> Fields::bytes(const Value& parent, const char* key, const std::string& path) {
  const auto value = maybe(parent, key, path, 0, kMaxCount);
  if (!value) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(*value));
}

std::string Fields::maybe_text(const Value& parent, const char* key, const std::string& path) {
  return given(parent, key) == nullptr ? std::string() : text(parent, key, path);
}

bool Fields::flag(const Value& parent, const char* key, const std::string& path,
                  bool otherwise_value) {
  return given(parent, key) == nullptr ? otherwise_value : flag(parent, key, path);
}

void Fields::take(const Value& parent, const char* key, const std::string& path, double low,
                  double high, double& out) {
  out = otherwise(parent, key, path, low, high, out);
}

void Fields::take(const Value& parent, const char* key, const std::string& path, double low,
                  double high, std::int64_t& out) {
  if (const auto value = maybe(parent, key, path, low, high))
    out = static_cast<std::int64_t>(*value);
}

void Fields::take(const Value& parent, const char* key, const std::string& path, Nanos& out) {
  if (const auto value = maybe(parent, key, path, 0, kMaxMs)) out = *value * kMillisecond;
}

void Fields::take(const Value& parent, const char* key, const std::string& path, Bytes& out) {
  out = bytes(parent, key, path).value_or(out);
}

void Fields::take(const Value& parent, const char* key, const std::string& path, bool& out) {
  out = flag(parent, key, path, out);
}

void Fields::take(const Value& parent, const char* key, const std::string& path, std::string& out) {
  if (given(parent, key) != nullptr) out = text(parent, key, path);
}

double Fields::checked(const Value& value, const std::string& path, double low, double high) {
  if (!value.is_number()) return refuse(path, "is not a number"), low;
  const double number = value.as_double();
  if (!(number >= low)) return refuse(path, number < 0 ? "is negative" : "is too small"), low;
  if (!(number <= high)) return refuse(path, "is impossibly large"), low;
  return number;
}

}  // namespace stoker::json
