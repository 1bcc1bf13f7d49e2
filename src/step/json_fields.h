#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json/value.h"
#include "step/step.h"

/// Internal to src/step: fields of a step file, each checked as it is read.
namespace stoker {

using Json = json::Value;

/// Carries an error up through the builders of the step reader; never leaves src/step.
struct Refusal {
  std::string message;
  std::string field;  ///< empty: the file as a whole
};

[[noreturn]] void refuse(std::string field, std::string message);

const Json& member(const Json& object, const char* key, const std::string& field);
std::int64_t integer(const Json& value, const std::string& field, std::int64_t low,
                     std::int64_t high);
std::string text(const Json& object, const char* key, const std::string& otherwise = {});
const Json& array(const Json& value, const std::string& field);
bool flag(const Json& value, const std::string& field);
double real(const Json& value, const std::string& field);
/// "events[12]"
std::string at(const char* field, std::size_t i);

/// An integer, or an object from monomials in the names of `dimensions` to coefficients. Refused
/// when it is negative or overflows at their defaults.
Polynomial read_polynomial(const Json& value, const std::vector<Dimension>& dimensions,
                           const std::string& field);

Attributes read_attributes(const Json& from, const std::string& field);

}  // namespace stoker
