#pragma once

#include <string_view>

namespace stoker::page {

/// The page without what it shows: "@TITLE@", "@TEXT@" and "@DATA@" stand for that, in this order.
[[nodiscard]] std::string_view page_template();

}  // namespace stoker::page
