#include "step/json_fields.h"

#include <utility>

#include "json/value.h"

namespace stoker {
namespace {

std::vector<std::int32_t> integers(const Json& value, const std::string& field) {
  std::vector<std::int32_t> result;
  if (value.is_integer()) {
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
  const Json* it = object.find(key);
  if (it == nullptr) refuse((field.empty() ? "" : field + ".") + key, "is missing");
  return *it;
}

std::int64_t integer(const Json& value, const std::string& field, std::int64_t low,
                     std::int64_t high) {
  if (!value.is_integer()) refuse(field, "must be an integer");
  if (value.kind() == Json::Kind::kUnsigned) {
    refuse(field, "is out of range");
  }
  const auto number = value.as_integer();
  if (number < low || number > high) {
    refuse(field, std::to_string(number) + " is out of range [" + std::to_string(low) + ", " +
                      std::to_string(high) + "]");
  }
  return number;
}

std::string text(const Json& object, const char* key, const std::string& otherwise) {
  const Json* it = object.find(key);
  if (it == nullptr || it->is_null()) return otherwise;
  if (!it->is_string()) refuse(key, "must be a string");
  return it->as_string();
}

const Json& array(const Json& value, const std::string& field) {
  if (!value.is_array()) refuse(field, "must be a list");
  return value;
}

std::string at(const char* field, std::size_t i) {
  return std::string(field) + "[" + std::to_string(i) + "]";
}

bool flag(const Json& value, const std::string& field) {
  if (value.is_bool()) return value.as_bool();
  return integer(value, field, 0, 1) == 1;
}

double real(const Json& value, const std::string& field) {
  if (!value.is_number()) refuse(field, "must be a number");
  return value.as_double();
}

namespace {

constexpr std::int64_t kMaxCoefficient = 1LL << 60;

std::size_t dimension_index(std::string_view name, const std::vector<Dimension>& dimensions,
                            const std::string& field) {
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i].name == name) return i;
  }
  refuse(field, "names the unknown dimension \"" + std::string(name.substr(0, 40)) + "\"");
}

Monomial monomial(std::string_view key, std::int64_t coefficient,
                  const std::vector<Dimension>& dimensions, const std::string& field) {
  Monomial term{coefficient, {}};
  while (!key.empty()) {
    const std::size_t star = key.find('*');
    std::string_view factor = key.substr(0, star);
    std::uint8_t power = 1;
    if (const std::size_t hat = factor.find('^'); hat != std::string_view::npos) {
      const std::string_view digits = factor.substr(hat + 1);
      if (digits != "2" && digits != "3") refuse(field, "has an exponent other than 2 and 3");
      power = static_cast<std::uint8_t>(digits[0] - '0');
      factor = factor.substr(0, hat);
    }
    auto& exponent = term.exponents[dimension_index(factor, dimensions, field)];
    if (exponent != 0) refuse(field, "names a dimension twice in one monomial");
    exponent = power;
    key = star == std::string_view::npos ? std::string_view{} : key.substr(star + 1);
  }
  return term;
}

}  // namespace

Polynomial read_polynomial(const Json& value, const std::vector<Dimension>& dimensions,
                           const std::string& field) {
  if (value.is_integer()) return Polynomial(integer(value, field, 0, kMaxCoefficient));
  if (!value.is_object()) refuse(field, "must be an integer or a polynomial");
  std::vector<Monomial> terms;
  for (const auto& [key, coefficient] : value.items()) {
    terms.push_back(monomial(key, integer(coefficient, field, -kMaxCoefficient, kMaxCoefficient),
                             dimensions, field));
  }
  Polynomial result(std::move(terms));
  DimensionValues defaults{};
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    defaults[i] = dimensions[i].default_value / dimensions[i].unit;
  }
  const auto there = result.evaluate(defaults);
  if (!there || *there < 0) refuse(field, "is negative or overflows at the default dimensions");
  return result;
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
    else if (key == "mask_kind") a.mask_kind = v.is_string() ? v.as_string() : "none";
    else if (key == "window") {
      a.window = integers(v, field);
      if (a.window.size() != 2) refuse(field, "a window has a size before and one after");
    } else if (key == "mode") a.rnn_mode = v.is_string() ? v.as_string() : "";
    else if (key == "layers") a.layers = static_cast<std::int32_t>(integer(v, field, 1, 1 << 16));
    else if (key == "hidden") a.hidden = static_cast<std::int32_t>(integer(v, field, 1, 1 << 24));
    else if (key == "bidirectional") a.bidirectional = flag(v, field);
    else if (key == "batch_first") a.batch_first = flag(v, field);
    else if (key == "v") a.views = static_cast<std::int32_t>(integer(v, field, 0, 1 << 24));
    else if (key == "c") a.graph = static_cast<std::int32_t>(integer(v, field, 1, 1 << 24));
  }
  return a;
}

}  // namespace stoker
