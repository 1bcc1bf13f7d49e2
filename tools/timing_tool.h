#pragma once

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "timing/step/coefficient_file.h"

/// What the programs of scripts/fit-timing share: rows are read once, then each line of standard
/// input asks for their times under a patch of the coefficients.
namespace stoker::timing_tool {

inline int complain(const char* tool, const Error& error) {
  std::fprintf(stderr, "%s: %s\n", tool, error.text().c_str());
  return 3;
}

/// Adds "gemm.compute=0.9".
inline Status add_item(const std::string& item, CoefficientPatch& patch) {
  const auto equals = item.find('=');
  if (equals == std::string::npos) return fail(ErrorCode::kBadInput, "must be name=value", item);
  patch.values.emplace_back(item.substr(0, equals),
                            std::strtod(item.c_str() + equals + 1, nullptr));
  return {};
}

/// Calls `answer(rows, coefficients, line)` with every line of standard input. Coefficients are
/// those that ship where no file is named. Returns the exit code.
template <class Rows, class Answer>
int answer_lines(const char* tool, const std::string& coefficients, const Result<Rows>& rows,
                 const Answer& answer) {
  const auto file =
      coefficients.empty() ? CoefficientFile::load_shipped() : CoefficientFile::load(coefficients);
  if (!file) return complain(tool, file.error());
  if (!rows) return complain(tool, rows.error());
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    if (const Status s = answer(*rows, *file, in); !s) return complain(tool, s.error());
  }
  return 0;
}

}  // namespace stoker::timing_tool
