#include "scenario/settings/settings_table.h"

namespace stoker {

std::span<const SettingRow> settings_table() {
  static const std::vector<SettingRow> kTable = [] {
    std::vector<SettingRow> rows;
    for (const std::span<const SettingRow> part :
         {job_settings(), search_settings(), measuring_settings(), lookup_settings(),
          study_settings(), tune_settings()})
      rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return kTable;
}

}  // namespace stoker
