#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::study {

/// What the output of a failed command says of memory that ran out.
struct OutOfMemory {
  std::string cause;   ///< cuda_out_of_memory or host_out_of_memory
  std::string reason;  ///< the framework's own sentence
  /// PyTorch's numbers where it tells them: gpu_asked_bytes, gpu_total_bytes, gpu_free_bytes,
  /// gpu_allocated_bytes, gpu_reserved_unallocated_bytes.
  std::map<std::string, double> figures;
};

/// Knows the words of PyTorch, TensorFlow, JAX, NumPy, Python and C++; nullopt: memory is not what
/// the output ends with.
[[nodiscard]] std::optional<OutOfMemory> out_of_memory_in(std::string_view output);

/// The line of a failed command's output that says that a disk was full; nullopt: none does.
[[nodiscard]] std::optional<std::string> disk_full_in(std::string_view output);

/// "SIGKILL (9)"
[[nodiscard]] std::string signal_words(int signal);

/// The last lines of an output, at most so many characters, without what a terminal would obey.
[[nodiscard]] std::string last_lines(std::string_view output, std::size_t lines = 20,
                                     std::size_t characters = 4000);

/// The last line that says something of an error: Python's exception, or the last that is not
/// empty.
[[nodiscard]] std::string error_line(std::string_view output);

/// "; pip install it ..." where such a line says that a script's Python lacks what reports to a
/// study.
[[nodiscard]] std::string_view cure_of(std::string_view error_line);

}  // namespace stoker::study
