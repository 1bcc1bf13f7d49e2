#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/setting.h"
#include "scenario/request/request.h"
#include "scenario/settings/settings.h"

namespace stoker {

/// A setting that a request says something about.
struct GivenSetting {
  Setting setting;
  bool off = false;                                                ///< a pair that is switched off
  std::variant<std::monostate, std::int64_t, double> number = {};  ///< where it is one

  /// How an error names it: "{clip}", "{no-clip}".
  [[nodiscard]] std::string where() const { return off ? mark_off(setting) : mark(setting); }
  /// Its row in the table of settings.
  [[nodiscard]] const SettingRow& row() const;
};

/// What a request says of the settings that the table holds to a range, to a kind of device or to
/// training. Where several are to be refused, the first of these is.
[[nodiscard]] std::vector<GivenSetting> given_settings(const RunRequest& request);

}  // namespace stoker
