#pragma once

#include <optional>

#include "study/executor/executor.h"

namespace stoker::study {

/// What became of a trial whose runner does not live: its result, or that it is lost, or that
/// nobody ran it and nobody will (its claim is withdrawn then). `handed_over`: a runner was started
/// for certain, so that it counts as failed rather than as never begun. nullopt: the folder cannot
/// be read at present.
[[nodiscard]] std::optional<TrialNews> settle_trial(std::int64_t trial, const TrialFiles& files,
                                                    bool handed_over);

/// The folder of the latest attempt at a trial: those before it were withdrawn.
[[nodiscard]] TrialFiles latest_files(const std::filesystem::path& store, std::int64_t trial);

}  // namespace stoker::study
