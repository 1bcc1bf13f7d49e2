#include "memory/cuda/allocator_config.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>
#include <vector>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::string_view kWhere = "PYTORCH_ALLOC_CONF";

/// Keys that PyTorch knows and that change nothing on the device.
constexpr std::string_view kWithoutEffect[] = {
    "pinned_use_background_threads", "pinned_use_cuda_host_register",
    "pinned_num_register_threads",   "pinned_reserve_segment_size_mb",
    "pinned_max_round_threshold_mb", "pinned_max_cached_size_mb",
    "release_lock_on_cudamalloc",    "graph_capture_record_stream_reuse"};

constexpr std::string_view kKeys[] = {"large_segment_size_mb",       "max_split_size_mb",
                                      "max_non_split_rounding_mb",   "garbage_collection_threshold",
                                      "roundup_power2_divisions",    "expandable_segments",
                                      "per_process_memory_fraction", "backend"};

/// "key", ":", "[", "value", "," ... ; white space does not count.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) tokens.push_back(std::exchange(word, {}));
  };
  for (const char c : text) {
    if (c == ',' || c == ':' || c == '[' || c == ']') {
      flush();
      tokens.emplace_back(1, c);
    } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      word += c;
    }
  }
  flush();
  return tokens;
}

tl::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::kBadInput, std::move(message), std::string(kWhere));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(tokens_of(text)) {}

  Result<AllocatorConfig> parse() {
    // The size of a segment first, as PyTorch does: other limits are measured by it.
    for (const bool segments : {true, false}) {
      at_ = 0;
      while (at_ < tokens_.size()) {
        const std::string key = tokens_[at_++];
        TRY(expect(":", key));
        const bool applies = (key == "large_segment_size_mb") == segments;
        TRY(applies ? set(key) : skip(key));
        if (at_ < tokens_.size()) {
          TRY(expect(",", key));
        }
      }
      if (segments) config_.max_non_split_rounding = config_.large_segment;
    }
    return config_;
  }

 private:
  Status expect(std::string_view token, const std::string& key) {
    if (at_ < tokens_.size() && tokens_[at_] == token) return ++at_, Status{};
    return bad("expected '" + std::string(token) + "' after '" + key + "'" +
               (at_ < tokens_.size() ? ", found '" + tokens_[at_] + "'" : std::string{}) +
               "; write key:value,key:value");
  }

  Result<std::string> value(const std::string& key) {
    if (at_ == tokens_.size()) return bad("'" + key + "' has no value");
    return tokens_[at_++];
  }

  Status skip(const std::string& key) {
    auto token = TRY(value(key));
    if (token != "[") return {};
    while (at_ < tokens_.size() && tokens_[at_] != "]") ++at_;
    return expect("]", key);
  }

  Result<std::int64_t> whole(const std::string& key, const std::string& token) {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(token.data(), token.data() + token.size(), number);
    if (code != std::errc{} || end != token.data() + token.size() || number < 0) {
      return bad("'" + key + "' wants a whole number, not '" + token + "'");
    }
    return number;
  }

  Result<double> share(const std::string& key) {
    auto token = TRY(value(key));
    double number = 0;
    const auto [end, code] = std::from_chars(token.data(), token.data() + token.size(), number);
    if (code != std::errc{} || end != token.data() + token.size() || !(number > 0 && number <= 1)) {
      return bad("'" + key + "' wants a share between 0 and 1, not '" + token + "'");
    }
    return number;
  }

  Result<Bytes> mebibytes_of(const std::string& key, std::int64_t least) {
    auto token = TRY(value(key));
    const auto number = TRY(whole(key, token));
    if (number < least) return bad("'" + key + "' must be at least " + std::to_string(least));
    constexpr std::int64_t kMost = kNoSplitLimit.count() / kMiB.count();
    return std::min(number, kMost) * kMiB;
  }

  template <class T>
  Status store(Result<T> result, auto& target) {
    if (!result) return tl::unexpected(result.error());
    target = *result;
    return {};
  }

  Status set(const std::string& key) {
    const std::int64_t segment = config_.large_segment.count() / kMiB.count();
    if (key == "large_segment_size_mb") {
      return store(mebibytes_of(key, kMinLargeAllocation.count() / kMiB.count() + 1),
                   config_.large_segment);
    }
    if (key == "max_split_size_mb")
      return store(mebibytes_of(key, segment), config_.max_split_size);
    if (key == "max_non_split_rounding_mb") {
      return store(mebibytes_of(key, segment), config_.max_non_split_rounding);
    }
    if (key == "garbage_collection_threshold") {
      auto threshold = share(key);
      if (threshold && *threshold == 1) return bad("'" + key + "' must be below 1");
      return store(threshold, config_.garbage_collection_threshold);
    }
    if (key == "per_process_memory_fraction") return store(share(key), config_.memory_fraction);
    if (key == "expandable_segments") return set_switch(key, config_.expandable_segments);
    if (key == "roundup_power2_divisions") return set_divisions(key);
    if (key == "backend") return set_backend(key);
    if (std::find(std::begin(kWithoutEffect), std::end(kWithoutEffect), key) !=
        std::end(kWithoutEffect)) {
      return skip(key);
    }
    const std::vector<std::string> names(std::begin(kKeys), std::end(kKeys));
    return bad("PyTorch's allocator has no setting '" + key + "'" + suggestion(key, names));
  }

  Status set_switch(const std::string& key, bool& target) {
    auto token = TRY(value(key));
    if (token != "True" && token != "False") {
      return bad("'" + key + "' is True or False, not '" + token + "'");
    }
    target = token == "True";
    return {};
  }

  Status set_backend(const std::string& key) {
    auto token = TRY(value(key));
    if (token == "native") return {};
    return fail(ErrorCode::kUnsupported,
                "the allocator backend '" + token + "' is not modelled; only 'native' is",
                std::string(kWhere));
  }

  Result<std::uint32_t> divisions(const std::string& key, const std::string& token) {
    auto number = TRY(whole(key, token));
    if (number != 0 && !std::has_single_bit(static_cast<std::uint64_t>(number))) {
      return bad("the divisions of '" + key + "' must be a power of two, not " + token);
    }
    return static_cast<std::uint32_t>(std::min<std::int64_t>(number, 1u << 31));
  }

  /// One number for all sizes, or "[256:1,512:2,>:4]": MiB where an interval begins, and its
  /// divisions. Smaller sizes take the first, ">" fills what follows the last that was named.
  Status set_divisions(const std::string& key) {
    auto token = TRY(value(key));
    auto& all = config_.roundup_power2_divisions;
    if (token != "[") {
      auto number = TRY(divisions(key, token));
      all.fill(number);
      return {};
    }
    std::optional<std::size_t> last;
    while (true) {
      auto begin = TRY(value(key));
      if (begin == "]" && !last) return {};
      if (auto status = expect(":", key); !status) return status;
      auto text = TRY(value(key));
      auto number = TRY(divisions(key, text));
      if (auto status = set_interval(key, begin, number, last); !status) return status;
      auto separator = TRY(value(key));
      if (separator == "]") return {};
      if (separator != ",")
        return bad("'" + key + "' wants [MB:divisions,...], found '" + separator + "'");
    }
  }

  Status set_interval(const std::string& key, const std::string& begin, std::uint32_t number,
                      std::optional<std::size_t>& last) {
    auto& all = config_.roundup_power2_divisions;
    if (begin == ">") {
      std::fill(all.begin() + static_cast<std::ptrdiff_t>(last ? *last + 1 : 0), all.end(), number);
      last = all.size() - 1;
      return {};
    }
    const auto megabytes = TRY(whole(key, begin));
    if (!std::has_single_bit(static_cast<std::uint64_t>(megabytes))) {
      return bad("the intervals of '" + key + "' begin at powers of two in MB, not at " + begin);
    }
    const auto log =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(megabytes))) - 1;
    const std::size_t interval = std::min(log, all.size() - 1);
    if (!last) std::fill(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(interval), number);
    all[interval] = number;
    last = interval;
    return {};
  }

  std::vector<std::string> tokens_;
  std::size_t at_ = 0;
  AllocatorConfig config_;
};

constexpr int kFirstIntervalLog =
    20;  ///< the first interval of roundup_power2_divisions begins at 1 MiB

}  // namespace

Result<AllocatorConfig> parse_allocator_config(std::string_view text) {
  return Parser(text).parse();
}

Bytes block_size(Bytes requested, const AllocatorConfig& config) {
  const std::int64_t unit = kMinBlockSize.count();
  const std::int64_t size = requested.count();
  if (size < unit) return kMinBlockSize;
  const int log = std::bit_width(static_cast<std::uint64_t>(size)) - 1;
  const int interval =
      std::clamp(log - kFirstIntervalLog, 0, static_cast<int>(kRoundupIntervals) - 1);
  const std::uint32_t parts = config.roundup_power2_divisions[static_cast<std::size_t>(interval)];
  // Steps of 512 bytes, or of one part of the distance to the next power of two where that is
  // larger.
  std::int64_t step = unit;
  if (parts > 1 && size > unit * parts)
    step = std::int64_t{1} << (log - (std::bit_width(parts) - 1));
  return Bytes{(size + step - 1) & ~(step - 1)};
}

}  // namespace stoker
