#pragma once

#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace stoker {

/// What kind of thing went wrong; decides the exit code (src/cli/main.cc).
enum class ErrorCode {
  kUsage,        ///< the command line cannot be meant (exit 2)
  kBadInput,     ///< a file, folder or value that was given cannot be used (exit 3)
  kNotFound,     ///< a name that nothing answers to (exit 3)
  kTooNew,       ///< a file of a newer format (exit 3)
  kIo,           ///< the system refused to read or write (exit 3)
  kUnsupported,  ///< understood, but not modelled yet; said by name (exit 3)
  kToldByChild,  ///< a child process has said on the terminal what was wrong (exit 3)
  kAnswerIsNo    ///< nothing was wrong: it does not fit, or nothing satisfies the limits (exit 1)
};

/// One clear sentence: what was wrong and the cure; `where` names the file, flag or field.
struct Error {
  ErrorCode code = ErrorCode::kBadInput;
  std::string message;
  std::string where;

  /// "where: message", or the message alone.
  [[nodiscard]] std::string text() const {
    return where.empty() ? message : where + ": " + message;
  }
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message,
                                                std::string where = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(where)});
}

namespace result_detail {
/// The value moved out; nothing of a Status.
template <class T>
T take(Result<T>& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
}  // namespace result_detail

}  // namespace stoker

/// TRY(expression) is the value of a Result, or leaves the enclosing function with its error:
///
///     const Step step = TRY(read_step_file(path));   // of a Result<Step>
///     TRY(check_job(job));                           // of a Status
///
/// The expression is evaluated once. The enclosing function returns a Result or a Status. Built on
/// statement expressions, an extension that gcc and clang share, because standard C++ has no
/// expression that returns from its function.
#define TRY(...) STOKER_TRY_AS(__COUNTER__, __VA_ARGS__)
#define STOKER_TRY_AS(number, ...) STOKER_TRY_NAMED(number, __VA_ARGS__)
#define STOKER_TRY_NAMED(number, ...)                                                 \
  __extension__({                                                                     \
    auto stoker_tried_##number = (__VA_ARGS__);                                       \
    if (!stoker_tried_##number)                                                       \
      return tl::unexpected<stoker::Error>(std::move(stoker_tried_##number).error()); \
    stoker::result_detail::take(stoker_tried_##number);                               \
  })
