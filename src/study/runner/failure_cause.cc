#include "study/runner/failure_cause.h"

#include <array>
#include <csignal>
#include <cstring>
#include <regex>

#include "base/text.h"
#include "system/system_files.h"

namespace stoker::study {
namespace {

struct Words {
  std::string_view text, cause;
};

constexpr std::array<Words, 12> kWords{{
    {"CUDA out of memory", "cuda_out_of_memory"},
    {"CUDA error: out of memory", "cuda_out_of_memory"},
    {"HIP out of memory", "cuda_out_of_memory"},
    {"cudaErrorMemoryAllocation", "cuda_out_of_memory"},
    {"CUDA_ERROR_OUT_OF_MEMORY", "cuda_out_of_memory"},
    {"torch.OutOfMemoryError", "cuda_out_of_memory"},
    {"RESOURCE_EXHAUSTED: Out of memory", "cuda_out_of_memory"},
    {"ResourceExhaustedError", "cuda_out_of_memory"},
    {"DefaultCPUAllocator: can't allocate memory", "host_out_of_memory"},
    {"numpy.core._exceptions._ArrayMemoryError", "host_out_of_memory"},
    {"MemoryError", "host_out_of_memory"},
    {"std::bad_alloc", "host_out_of_memory"},
}};

std::string_view line_at(std::string_view text, std::size_t at) {
  const std::size_t before = text.rfind('\n', at);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

void number(std::map<std::string, double>& figures, const char* name, const std::string& line,
            const char* pattern) {
  // PyTorch writes sizes of up to a KiB as "0 bytes".
  constexpr std::string_view kSize = R"(([0-9.]+) ?([KMGT]iB|bytes))", kPlace = "SIZE";
  std::string words = pattern;
  words.replace(words.find(kPlace), kPlace.size(), kSize);
  std::smatch match;
  if (!std::regex_search(line, match, std::regex(words))) return;
  const std::string unit = match[2].str();
  if (const auto bytes = parse_bytes(match[1].str() + (unit == "bytes" ? "" : unit)))
    figures[name] = static_cast<double>(bytes->count());
}

/// "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.05 GiB is free.
/// ... Of the allocated memory 13.90 GiB is allocated by PyTorch, and 210.11 MiB is reserved by
/// PyTorch but unallocated", and the older "(GPU 0; 15.77 GiB total capacity; 13.90 GiB already
/// allocated; 1.05 GiB free; ...)".
std::map<std::string, double> pytorch_figures(const std::string& line) {
  std::map<std::string, double> figures;
  number(figures, "gpu_asked_bytes", line, "Tried to allocate SIZE");
  number(figures, "gpu_total_bytes", line, "total capacity of SIZE");
  number(figures, "gpu_total_bytes", line, "SIZE total capacity");
  number(figures, "gpu_free_bytes", line, "of which SIZE is free");
  number(figures, "gpu_free_bytes", line, "; SIZE free");
  number(figures, "gpu_allocated_bytes", line,
         "SIZE (?:is allocated by PyTorch|already allocated)");
  number(figures, "gpu_reserved_unallocated_bytes", line,
         "SIZE is reserved by PyTorch but unallocated");
  return figures;
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 && c != '\n' && c != '\t' ? ' ' : byte == 0x7f ? ' ' : c;
  }
  return result;
}

}  // namespace

std::optional<OutOfMemory> out_of_memory_in(std::string_view output) {
  std::size_t last = 0;
  const Words* found = nullptr;
  for (const Words& words : kWords) {
    const std::size_t at = output.rfind(words.text);
    // Where one line holds several words, the first of the table says most.
    if (at == std::string_view::npos) continue;
    if (found != nullptr && line_at(output, at).data() <= line_at(output, last).data()) continue;
    found = &words;
    last = at;
  }
  if (found == nullptr) return std::nullopt;
  OutOfMemory result;
  result.cause = found->cause;
  result.reason = printable(line_at(output, last));
  constexpr std::size_t kMost = 400;
  result.figures = pytorch_figures(result.reason);
  if (result.reason.size() > kMost) result.reason.resize(kMost);
  return result;
}

std::optional<std::string> disk_full_in(std::string_view output) {
  // errno's sentences, and PyTorch's archive writer, which does not tell them.
  for (const std::string_view words :
       {"No space left on device", "Disk quota exceeded", "PytorchStreamWriter failed writing"}) {
    const std::size_t at = output.rfind(words);
    if (at != std::string_view::npos) return printable(line_at(output, at).substr(0, 200));
  }
  return std::nullopt;
}

std::string signal_words(int signal) {
  const char* name = sigabbrev_np(signal);
  return (name == nullptr ? "signal" : "SIG" + std::string(name)) + " (" + std::to_string(signal) +
         ")";
}

std::string last_lines(std::string_view output, std::size_t lines, std::size_t characters) {
  while (!output.empty() && (output.back() == '\n' || output.back() == '\r'))
    output.remove_suffix(1);
  std::size_t begin = output.size();
  for (std::size_t i = 0; i < lines && begin != std::string_view::npos && begin > 0; ++i)
    begin = output.rfind('\n', begin - 1);
  if (begin != std::string_view::npos && begin < output.size() && output[begin] == '\n') ++begin;
  output = begin == std::string_view::npos ? output : output.substr(begin);
  if (output.size() > characters) output.remove_prefix(output.size() - characters);
  return printable(output);
}

std::string_view cure_of(std::string_view error_line) {
  return error_line.ends_with("No module named 'stoker'")
             ? "; pip install it into the Python that the command runs"
             : "";
}

std::string error_line(std::string_view output) {
  std::string fallback;
  const auto lines = split(output, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::string_view text = trimmed(*line);
    if (text.empty()) continue;
    if (fallback.empty()) fallback = text.substr(0, 200);
    // "ValueError: ...", "torch.cuda.Something: ..."
    const std::size_t colon = text.find(": ");
    if (line->front() != ' ' && colon != std::string_view::npos &&
        (text.substr(0, colon).ends_with("Error") || text.substr(0, colon).ends_with("Exception")))
      return printable(text.substr(0, 200));
  }
  return printable(fallback);
}

}  // namespace stoker::study
