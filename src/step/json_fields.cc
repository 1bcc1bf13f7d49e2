#include "step/json_fields.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace stoker {
namespace {

std::vector<std::int32_t> integers(const Json& value, const std::string& field) {
  std::vector<std::int32_t> result;
  if (value.is_number_integer()) {
    result.push_back(static_cast<std::int32_t>(integer(value, field, -(1 << 30), 1 << 30)));
    return result;
  }
  for (const Json& v : array(value, field)) {
    result.push_back(static_cast<std::int32_t>(integer(v, field, -(1 << 30), 1 << 30)));
  }
  return result;
}

}  // namespace

[[noreturn]] void refuse(std::string field, std::string message) {
  throw Refusal{std::move(message), std::move(field)};
}

const Json& member(const Json& object, const char* key, const std::string& field) {
  const auto it = object.find(key);
  if (it == object.end()) refuse((field.empty() ? "" : field + ".") + key, "is missing");
  return *it;
}

std::int64_t integer(const Json& value, const std::string& field, std::int64_t low,
                     std::int64_t high) {
  if (!value.is_number_integer()) refuse(field, "must be an integer");
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(high)) {
    refuse(field, "is out of range");
  }
  const auto number = value.get<std::int64_t>();
  if (number < low || number > high) {
    refuse(field, std::to_string(number) + " is out of range [" + std::to_string(low) + ", " +
                      std::to_string(high) + "]");
  }
  return number;
}

std::string text(const Json& object, const char* key, const std::string& otherwise) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return otherwise;
  if (!it->is_string()) refuse(key, "must be a string");
  return it->get<std::string>();
}

const Json& array(const Json& value, const std::string& field) {
  if (!value.is_array()) refuse(field, "must be a list");
  return value;
}

std::string at(const char* field, std::size_t i) {
  return std::string(field) + "[" + std::to_string(i) + "]";
}

bool flag(const Json& value, const std::string& field) {
  if (value.is_boolean()) return value.get<bool>();
  return integer(value, field, 0, 1) == 1;
}

double real(const Json& value, const std::string& field) {
  if (!value.is_number()) refuse(field, "must be a number");
  return value.get<double>();
}

Attributes read_attributes(const Json& from, const std::string& field) {
  Attributes a;
  if (!from.is_object()) refuse(field, "attributes must be an object");
  for (const auto& [key, v] : from.items()) {
    if (key == "stride") a.stride = integers(v, field);
    else if (key == "padding") a.padding = integers(v, field);
    else if (key == "dilation") a.dilation = integers(v, field);
    else if (key == "output_padding") a.output_padding = integers(v, field);
    else if (key == "kernel") a.kernel = integers(v, field);
    else if (key == "dim") a.dim = integers(v, field);
    else if (key == "mask") {
      for (const Json& m : array(v, field)) a.gradients.push_back(flag(m, field));
    } else if (key == "groups") a.groups = static_cast<std::int32_t>(integer(v, field, 1, 1 << 24));
    else if (key == "transposed") a.transposed = flag(v, field);
    else if (key == "causal") a.causal = flag(v, field);
    else if (key == "train") a.train = flag(v, field);
    else if (key == "dropout") a.dropout = real(v, field);
    else if (key == "scale") a.scale = v.is_null() ? 0 : real(v, field);
    else if (key == "mask_kind") a.mask_kind = v.is_string() ? v.get<std::string>() : "none";
    else if (key == "mode") a.rnn_mode = v.is_string() ? v.get<std::string>() : "";
    else if (key == "layers") a.layers = static_cast<std::int32_t>(integer(v, field, 1, 1 << 16));
    else if (key == "hidden") a.hidden = static_cast<std::int32_t>(integer(v, field, 1, 1 << 24));
    else if (key == "bidirectional") a.bidirectional = flag(v, field);
    else if (key == "batch_first") a.batch_first = flag(v, field);
    else if (key == "v") a.views = static_cast<std::int32_t>(integer(v, field, 0, 1 << 24));
  }
  return a;
}

}  // namespace stoker
