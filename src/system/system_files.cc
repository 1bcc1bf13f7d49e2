#include "system/system_files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/text.h"

namespace stoker {
namespace {

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  text = trimmed(text);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

SystemFiles system_files() {
  return [](const std::string& path) -> std::optional<std::string> {
    // The kernel says that these files are empty, so they are read until they end.
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               &std::fclose);
    if (!file) return std::nullopt;
    std::string content;
    char block[4096];
    while (const std::size_t n = std::fread(block, 1, sizeof block, file.get()))
      content.append(block, n);
    return content;
  };
}

SystemFolders system_folders() {
  return [](const std::string& path) {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
         at.increment(error))
      names.push_back(at->path().filename().string());
    std::ranges::sort(names);
    return names;
  };
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == key)
      return trimmed(line.substr(colon + 1));
  }
  return {};
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  return number_in<std::int64_t>(text);
}

std::optional<double> decimal_number(std::string_view text) {
  const auto value = number_in<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::vector<int> cpu_list(std::string_view list) {
  constexpr std::int64_t kMostProcessors = 1 << 20;
  std::vector<int> processors;
  for (const std::string& part : split(trimmed(list), ',')) {
    const std::size_t dash = part.find('-');
    const auto first = whole_number(std::string_view(part).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : whole_number(std::string_view(part).substr(dash + 1));
    const bool fine = first && last && *first >= 0 && *last >= *first && *last <= kMostProcessors;
    if (!fine || std::ssize(processors) + *last - *first > kMostProcessors) return {};
    for (std::int64_t i = *first; i <= *last; ++i) processors.push_back(static_cast<int>(i));
  }
  return processors;
}

int count_cpu_list(std::string_view list) { return static_cast<int>(cpu_list(list).size()); }

}  // namespace stoker
