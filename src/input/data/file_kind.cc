#include <algorithm>
#include <iterator>

#include "input/data/folder_scan.h"

namespace stoker {
namespace {

constexpr std::string_view kPictures[] = {"jpg", "jpeg", "jpe", "jfif", "png"};
constexpr std::string_view kTexts[] = {"txt", "jsonl", "csv", "tsv", "ndjson"};
/// Longest ending that is taken for one: longer ones are parts of names.
constexpr std::size_t kLongestEnding = 10;

template <std::size_t n>
bool contains(const std::string_view (&list)[n], std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

/// CIFAR's pickles have no ending: data_batch_1 ... test_batch (CIFAR-10).
bool is_cifar_pickle(std::string_view name) {
  return name == "test_batch" || (name.starts_with("data_batch_") && name.size() == 12);
}

}  // namespace

std::string file_ending(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || name.size() - dot > kLongestEnding) return {};
  return lower(name.substr(dot + 1));
}

FileKind file_kind(std::string_view name) {
  std::string ending = file_ending(name);
  if (contains(kPictures, ending)) return FileKind::kPicture;
  if (ending == "tar" || ending == "tgz") return FileKind::kTar;
  const std::string whole = lower(name);
  if (whole.ends_with(".tar.gz")) return FileKind::kTar;
  // The labels' names of CIFAR and other notes beside the records are text, but no data.
  if (whole == "batches.meta.txt" || whole == "readme.txt") return FileKind::kOther;
  std::string_view plain = whole;
  if (ending == "gz") {
    plain.remove_suffix(3);
    ending = file_ending(plain);
  }
  if (contains(kTexts, ending)) return FileKind::kText;
  if (ending == "bin" || plain.ends_with("-ubyte") || plain.ends_with(".idx") ||
      plain.ends_with("idx1-ubyte") || plain.ends_with("idx3-ubyte") || is_cifar_pickle(plain)) {
    return FileKind::kRecords;
  }
  return FileKind::kOther;
}

}  // namespace stoker
