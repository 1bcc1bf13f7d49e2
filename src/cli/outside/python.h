#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker::cli {

/// Runs `python -m stoker ARGUMENTS` and waits; standard streams are inherited, stdout goes to
/// stderr when `quiet`. The interpreter is $STOKER_PYTHON, else the one beside the installed
/// package, else python3. The exit code of the child; an error when no interpreter can be started.
[[nodiscard]] Result<int> run_python_stoker(const std::vector<std::string>& arguments, bool quiet);

/// Folder of the Python package `stoker` that those runs use; empty when none is found beside the
/// binary.
[[nodiscard]] std::filesystem::path python_package();

/// Tells one interpreter, its search path and the state of this package from another: what each
/// captures may differ.
[[nodiscard]] std::string python_identity();

/// Becomes `python -m stoker ARGUMENTS`: signals reach it, and nothing waits behind it. It finds
/// this binary in $STOKER_BINARY. Returns only when no interpreter can be started.
[[nodiscard]] Error become_python_stoker(const std::vector<std::string>& arguments);

}  // namespace stoker::cli
