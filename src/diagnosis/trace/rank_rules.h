#pragma once

#include "diagnosis/trace/ranks_diagnosis.h"

namespace stoker {

/// Findings and the verdict, from what `d` says of the ranks.
void add_rank_findings(RanksDiagnosis& d);

}  // namespace stoker
