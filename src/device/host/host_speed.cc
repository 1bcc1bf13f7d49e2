#include "device/host/host_speed.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/text.h"

namespace stoker {
namespace {

/// Work of one thread in a clock, relative to Haswell; each step is what its maker published for
/// integer code: AMD +52 % (Zen, of Excavator; about Broadwell), +15 (Zen 2), +19 (Zen 3), +14 (Zen
/// 4), +16 (Zen 5); Intel +5 (Broadwell), +10 (Skylake), +18 (Sunny Cove), +19 (Golden Cove), +9
/// (Lion Cove).
enum class Core : std::uint8_t {
  kHaswell,
  kBroadwell,
  kSkylake,
  kSunnyCove,
  kGoldenCove,
  kLionCove,
  kZen,
  kZen2,
  kZen3,
  kZen4,
  kZen5,
  kNeoverseV2
};
constexpr double per_clock(Core core) {
  constexpr std::array<double, 12> kWork{1.00, 1.05, 1.15, 1.36, 1.62, 1.77,
                                         1.10, 1.26, 1.50, 1.71, 1.99, 1.75};
  return kWork[static_cast<std::size_t>(core)];
}

/// The core that data/measured/host was measured on: Zen 5 at 4.5 GHz.
constexpr double kReference = per_clock(Core::kZen5) * 4.52;

/// 90 % half-widths. Of a processor that rows tell of: what its rows differ by among themselves.
/// The others are wider than kListedSpread by judgement.
constexpr double kToldSpread = 0.1, kGenerationSpread = 0.36, kUsualSpread = 0.45;

/// A processor or a generation of them: the letters and digits that its names hold, in order, '#'
/// for any digit.
struct Row {
  std::string_view pattern;
  Core core;
  double turbo_ghz;  ///< of one core, by the data sheet
  /// Speed over what core and clock say, where published host-bound rows tell; 0: none do.
  double measured = 0;
};

/// The first row that fits is taken: processors before their generations.
constexpr std::array kRows{
    Row{"e52698v4", Core::kBroadwell, 3.6, 0.84},
    Row{"epyc7742", Core::kZen2, 3.4, 1.25},
    Row{"e52690v4", Core::kBroadwell, 3.5},
    Row{"e52686v4", Core::kBroadwell, 3.0},
    Row{"e52680v4", Core::kBroadwell, 3.3},
    Row{"e5####v4", Core::kBroadwell, 3.4},
    Row{"e5####v3", Core::kHaswell, 3.3},
    Row{"platinum8168", Core::kSkylake, 3.7},
    Row{"platinum8175", Core::kSkylake, 3.5},
    Row{"platinum8259", Core::kSkylake, 3.5},
    Row{"platinum8275", Core::kSkylake, 3.9},
    Row{"platinum8280", Core::kSkylake, 4.0},
    Row{"platinum8380", Core::kSunnyCove, 3.4},
    Row{"platinum8462", Core::kGoldenCove, 4.1},
    Row{"platinum8480", Core::kGoldenCove, 3.8},
    Row{"platinum8488", Core::kGoldenCove, 3.8},
    Row{"platinum8558", Core::kGoldenCove, 4.0},
    Row{"platinum8568", Core::kGoldenCove, 4.0},
    Row{"xeon6###p", Core::kGoldenCove, 3.9},
    Row{"platinum#1##", Core::kSkylake, 3.7},
    Row{"platinum#2##", Core::kSkylake, 3.8},
    Row{"platinum#3##", Core::kSunnyCove, 3.5},
    Row{"platinum#4##", Core::kGoldenCove, 3.8},
    Row{"platinum#5##", Core::kGoldenCove, 3.9},
    Row{"gold#1##", Core::kSkylake, 3.7},
    Row{"gold#2##", Core::kSkylake, 3.8},
    Row{"gold#3##", Core::kSunnyCove, 3.5},
    Row{"gold#4##", Core::kGoldenCove, 3.8},
    Row{"gold#5##", Core::kGoldenCove, 3.8},
    Row{"silver#1##", Core::kSkylake, 3.1},
    Row{"silver#2##", Core::kSkylake, 3.3},
    Row{"silver#3##", Core::kSunnyCove, 3.5},
    Row{"xeonw#24##", Core::kGoldenCove, 4.7},
    Row{"xeonw#25##", Core::kGoldenCove, 4.8},
    Row{"xeonw#34##", Core::kGoldenCove, 4.8},
    Row{"xeonw#35##", Core::kGoldenCove, 4.8},
    Row{"xeonw21##", Core::kSkylake, 4.4},
    Row{"xeonw22##", Core::kSkylake, 4.6},
    Row{"xeonw32##", Core::kSkylake, 4.4},
    Row{"xeonw33##", Core::kSunnyCove, 4.0},
    Row{"epyc7r32", Core::kZen2, 3.3},
    Row{"epyc7b12", Core::kZen2, 3.3},
    Row{"epyc7v12", Core::kZen2, 3.3},
    Row{"epyc7#f2", Core::kZen2, 3.9},
    Row{"epyc7r13", Core::kZen3, 3.6},
    Row{"epyc7b13", Core::kZen3, 3.5},
    Row{"epyc7v13", Core::kZen3, 3.5},
    Row{"epyc7#f3", Core::kZen3, 4.0},
    Row{"epyc9r14", Core::kZen4, 3.7},
    Row{"epyc9b14", Core::kZen4, 3.7},
    Row{"epyc9v84", Core::kZen4, 3.7},
    Row{"epyc9b45", Core::kZen5, 4.1},
    Row{"epyc7763", Core::kZen3, 3.5},
    Row{"epyc75f3", Core::kZen3, 4.0},
    Row{"epyc9654", Core::kZen4, 3.7},
    Row{"epyc9374f", Core::kZen4, 4.3},
    Row{"epyc9575f", Core::kZen5, 5.0},
    Row{"epyc7##1", Core::kZen, 3.0},
    Row{"epyc7##2", Core::kZen2, 3.35},
    Row{"epyc7##3", Core::kZen3, 3.6},
    Row{"epyc9##4", Core::kZen4, 3.8},
    Row{"epyc9##5", Core::kZen5, 4.3},
    Row{"threadripper1###", Core::kZen, 4.0},
    Row{"threadripper2###", Core::kZen, 4.2},
    Row{"threadripper3###", Core::kZen2, 4.5},
    Row{"threadripperpro3###", Core::kZen2, 4.2},
    Row{"threadripperpro5###", Core::kZen3, 4.5},
    Row{"threadripperpro7###", Core::kZen4, 5.1},
    Row{"threadripper7###", Core::kZen4, 5.1},
    Row{"ryzen#1###", Core::kZen, 4.0},
    Row{"ryzen#2###", Core::kZen, 4.3},
    Row{"ryzen#3###", Core::kZen2, 4.5},
    Row{"ryzen#5###", Core::kZen3, 4.8},
    Row{"ryzen#7###", Core::kZen4, 5.4},
    Row{"ryzen#9###", Core::kZen5, 5.6},
    Row{"i#6###", Core::kSkylake, 4.0},
    Row{"i#7###", Core::kSkylake, 4.3},
    Row{"i#8###", Core::kSkylake, 4.6},
    Row{"i#9###", Core::kSkylake, 4.9},
    Row{"i#10###", Core::kSkylake, 5.1},
    Row{"i#11###", Core::kSunnyCove, 5.1},
    Row{"i#12###", Core::kGoldenCove, 5.1},
    Row{"i#13###", Core::kGoldenCove, 5.6},
    Row{"i#14###", Core::kGoldenCove, 5.8},
    Row{"i#4###", Core::kHaswell, 3.9},
    Row{"ultra#1##", Core::kGoldenCove, 4.9},
    Row{"ultra#2##", Core::kLionCove, 5.5},
    Row{"neoversev2", Core::kNeoverseV2, 3.3},
    Row{"grace", Core::kNeoverseV2, 3.3},
};

/// Letters and digits in lower case, from where makers differ in what they add.
std::string plain(std::string_view name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with("(R)") || name.substr(i).starts_with("(r)")) {
      i += 2;
      continue;
    }
    if (name.substr(i).starts_with("(TM)") || name.substr(i).starts_with("(tm)")) {
      i += 3;
      continue;
    }
    if (name[i] == '@') break;
    if (std::isalnum(static_cast<unsigned char>(name[i])) != 0)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return text;
}

bool fits_at(std::string_view text, std::string_view pattern) {
  if (text.size() < pattern.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (pattern[i] == '#' ? !digit : text[i] != pattern[i]) return false;
  }
  return true;
}

bool fits(std::string_view text, std::string_view pattern) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (fits_at(text.substr(at), pattern)) return true;
  }
  return false;
}

HostSpeed speed_of(const Row& row, std::string name) {
  const double by_clock = per_clock(row.core) * row.turbo_ghz / kReference;
  const bool one = row.pattern.find('#') == std::string_view::npos;
  if (row.measured > 0)
    return {by_clock * row.measured, kToldSpread, std::move(name), "published host-bound rows",
            row.measured};
  return {by_clock, one ? kListedSpread : kGenerationSpread, std::move(name),
          "work per clock and turbo clock by data sheets"};
}

struct Usual {
  Core core;
  double turbo_ghz;
  const char* words;
};

/// Cards for games sit in desktops, whose few cores run faster.
bool is_for_desktops(std::string_view gpu) {
  return gpu.starts_with("RTX") || gpu.starts_with("GTX") || gpu.starts_with("TITAN");
}

Usual usual_desktop(Architecture architecture) {
  switch (architecture) {
    case Architecture::kKepler:
    case Architecture::kMaxwell:
      return {Core::kHaswell, 4.0, "a desktop of Haswell's time"};
    case Architecture::kPascal:
    case Architecture::kVolta:
    case Architecture::kTuring:
      return {Core::kSkylake, 4.5, "a desktop of Skylake's time"};
    case Architecture::kAmpere:
      return {Core::kZen3, 4.8, "a desktop of Zen 3's time"};
    case Architecture::kBlackwell:
      return {Core::kZen5, 5.5, "a desktop of Zen 5's time"};
    default:
      return {Core::kZen4, 5.2, "a desktop of Zen 4's time"};
  }
}

Usual usual_server(Architecture architecture) {
  switch (architecture) {
    case Architecture::kKepler:
    case Architecture::kMaxwell:
      return {Core::kHaswell, 3.3, "a server of Haswell's time"};
    case Architecture::kPascal:
    case Architecture::kVolta:
      return {Core::kBroadwell, 3.6, "a server of Broadwell's time"};
    case Architecture::kTuring:
      return {Core::kSkylake, 3.2, "a server of Skylake's time"};
    case Architecture::kAmpere:
      return {Core::kZen2, 3.4, "a server of Zen 2's time"};
    case Architecture::kAda:
    case Architecture::kCdna:
    case Architecture::kOther:
      return {Core::kZen3, 3.6, "a server of Zen 3's time"};
    case Architecture::kHopper:
      return {Core::kGoldenCove, 3.8, "a server of Sapphire Rapids' time"};
    case Architecture::kBlackwell:
      return {Core::kZen5, 4.2, "a server of Zen 5's time"};
  }
  return {Core::kZen3, 3.6, "a server of Zen 3's time"};
}

}  // namespace

Result<HostSpeed> host_speed(std::string_view cpu) {
  const std::string text = plain(cpu);
  for (const Row& row : kRows) {
    if (!text.empty() && fits(text, row.pattern)) return speed_of(row, printable(cpu));
  }
  return fail(ErrorCode::kBadInput,
              "the processor \"" + printable(cpu) +
                  "\" is not known; write it as /proc/cpuinfo does, with its model number (Xeon "
                  "E5-2698 v4, EPYC 7742, Xeon Platinum 8480), or leave it out: a server of the "
                  "GPU's years stands in");
}

HostSpeed usual_host(const Gpu& gpu) {
  const Usual host =
      is_for_desktops(gpu.name) ? usual_desktop(gpu.architecture) : usual_server(gpu.architecture);
  return {per_clock(host.core) * host.turbo_ghz / kReference, kUsualSpread, host.words,
          "nobody named the host's processor"};
}

}  // namespace stoker
