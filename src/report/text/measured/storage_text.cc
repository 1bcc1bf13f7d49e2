#include "report/text/measured/storage_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "input/probe/page_cache.h"
#include "report/text/layout.h"

namespace stoker {
namespace {
using namespace layout;

/// More reads at once that lose so much of the best rate make things worse, not just no better.
constexpr double kWorse = 0.9;

std::string rate_of_bytes(double bytes_per_s) {
  return human_bytes(Bytes(static_cast<std::int64_t>(bytes_per_s))) + "/s";
}

std::string depth_table(const StorageFacts& storage) {
  std::vector<std::string> header{"reads at once"}, random{"4 KiB reads/s"}, files{"files/s"},
      bytes{"files, MB/s"}, wait{"ms a file"};
  for (const int depth : kQueueDepths) {
    header.push_back(std::to_string(depth));
    const auto find = [depth](const std::vector<DepthFacts>& rows) {
      return std::find_if(rows.begin(), rows.end(),
                          [depth](const DepthFacts& row) { return row.depth == depth; });
    };
    const auto small = find(storage.random_4k);
    const auto whole = find(storage.whole_files);
    random.push_back(small == storage.random_4k.end() ? "-" : number(small->reads_per_s));
    const bool known = whole != storage.whole_files.end();
    files.push_back(known ? number(whole->reads_per_s) : "-");
    bytes.push_back(known ? number(whole->bytes_per_s * 1e-6) : "-");
    wait.push_back(known ? two_digits(whole->mean_ms) : "-");
  }
  return table({header, random, files, bytes, wait}, {0});
}

std::string method_words(ColdMethod method) {
  switch (method) {
    case ColdMethod::kDirect:
      return "cold reads by O_DIRECT";
    case ColdMethod::kForget:
      return "cold reads through an emptied page cache (O_DIRECT is refused)";
    case ColdMethod::kNone:
      break;
  }
  return "no cold reads here";
}

/// Memory that would hold the whole data set.
Bytes memory_to_hold(const Probe& probe) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(probe.dataset.total_bytes.count()) /
                                         kCacheableMemory));
}

}  // namespace

std::string storage_text(const Probe& probe) {
  if (!probe.storage) return "";
  const StorageFacts& s = *probe.storage;
  std::string name = s.file_system.name;
  if (s.file_system.kind == FileSystemKind::kOverlay)
    name +=
        fmt::format(" of {} layer{}{}", s.file_system.layers, s.file_system.layers == 1 ? "" : "s",
                    s.file_system.upper ? " and its own" : "");
  std::vector<std::string> facts{name, method_words(s.method)};
  if (s.resident.files > 0) {
    facts.push_back(fmt::format("{} of the data was in the page cache ({} of {} files)",
                                percent(s.resident.share), s.resident.method,
                                with_commas(s.resident.files)));
  }
  if (s.sequential_bytes_per_s > 0)
    facts.push_back("sequential " + rate_of_bytes(s.sequential_bytes_per_s));
  if (s.small_file_warm_us > 0)
    facts.push_back(fmt::format("{} us to open, read and close a cached file",
                                two_digits(s.small_file_warm_us)));
  facts.push_back(fmt::format("stat {} us", two_digits(s.stat_us)));
  if (s.list_entries_per_s > 0)
    facts.push_back(fmt::format("listing {} entries/s", number(s.list_entries_per_s)));
  std::string text = "\n" + labelled("Storage", facts);
  if (!s.random_4k.empty() || !s.whole_files.empty()) text += depth_table(s);
  if (const std::string_view meaning = file_system_meaning(s.file_system.kind); !meaning.empty())
    text += std::string(meaning) + "\n";
  return text;
}

std::string cache_text(const Probe& probe, const std::vector<CacheWhatIf>& rows) {
  if (rows.empty()) return "";
  std::string text = fmt::format("\nPage cache: {} of data, read once an epoch in a new order\n",
                                 human_bytes(probe.dataset.total_bytes));
  const std::string word(sample_word(probe.kind));
  std::vector<std::vector<std::string>> cells{
      {"memory", "cached", "first epoch", word + "s/s", "later", word + "s/s", "limit"}};
  for (const CacheWhatIf& row : rows) {
    cells.push_back({human_bytes(row.memory) + (row.this_host ? " (free here)" : ""),
                     percent(row.cached), human_time(row.first_seconds * kSecond),
                     number(row.first_per_s), human_time(row.later_seconds * kSecond),
                     number(row.later_per_s), row.disk_bound ? "storage" : "cores"});
  }
  return text + table(cells, {0});
}

std::string pace_text(const Probe& probe, const std::vector<CacheWhatIf>& rows) {
  const double storage = storage_samples_per_s(probe);
  if (rows.empty() || storage <= 0) return "";
  const CacheWhatIf& here = rows.front();
  const bool first_bound = here.first_per_s >= storage;
  const std::string word(sample_word(probe.kind));
  return fmt::format("Storage delivers {} {}s/s cold: {}\n", number(storage), word,
                     !first_bound ? "the cores set the pace"
                     : here.disk_bound
                         ? "storage sets the pace of every epoch"
                         : "storage sets the pace of the first epoch, the cores later");
}

std::vector<std::string> storage_advice(const Probe& probe, const std::vector<CacheWhatIf>& rows) {
  std::vector<std::string> out;
  if (!probe.storage) return out;
  const StorageFacts& s = *probe.storage;
  const DepthFacts* best = s.best_whole_files();
  if (best != nullptr && best != &s.whole_files.back() &&
      s.whole_files.back().reads_per_s < kWorse * best->reads_per_s) {
    out.push_back(fmt::format(
        "{} reads at once give {} files/s, {} give {}: more workers than about {} make it worse",
        best->depth, number(best->reads_per_s), s.whole_files.back().depth,
        number(s.whole_files.back().reads_per_s), best->depth));
  }
  if (!rows.empty() && rows.front().disk_bound) {
    out.push_back(fmt::format(
        "{} of memory would hold the data and save storage from the second epoch on; see --dram",
        human_bytes(memory_to_hold(probe))));
    if (probe.kind == DataKind::kPictures && s.sequential_bytes_per_s <= 0)
      out.push_back(
          "files packed into tar shards are read from front to back, without a seek for each");
  }
  if (s.limit.count() > 0 && s.limit < s.available && probe.dataset.total_bytes > s.limit &&
      probe.dataset.total_bytes < s.available) {
    out.push_back(
        fmt::format("the memory limit of this container ({}) keeps the data out of the "
                    "page cache; the host has {} free",
                    human_bytes(s.limit), human_bytes(s.available)));
  }
  return out;
}

}  // namespace stoker
