#include "accuracy/common/folds.h"

#include <utility>

#include "accuracy/common/statistics.h"

namespace stoker::accuracy {

Result<Folds> Folds::open(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  Folds folds;
  if (folder.empty()) return folds;
  folds.folder_ = folder;
  std::error_code error;
  if (fs::is_directory(folder / "shapes", error)) {
    auto file = TRY(CoefficientFile::load(folder / "shapes"));
    folds.shapes_ = std::move(file);
  }
  for (const int half : {0, 1}) {
    const fs::path part = folder / ("models-" + std::to_string(half));
    if (!fs::is_directory(part, error)) continue;
    auto file = TRY(CoefficientFile::load(part));
    folds.models_[static_cast<std::size_t>(half)] = std::move(file);
  }
  for (const auto& entry : fs::directory_iterator(folder / "without", error)) {
    auto file = TRY(CoefficientFile::load(entry.path()));
    folds.without_.emplace(entry.path().filename().string(), std::move(file));
  }
  if (folds.empty()) {
    return fail(ErrorCode::kNotFound,
                "holds neither shapes/ nor without/ (scripts/fit-timing --folds)", folder.string());
  }
  return folds;
}

const CoefficientFile* Folds::without_model(const std::string& model) const {
  const auto& found = models_[static_cast<std::size_t>(half_of(model))];
  return found ? &*found : nullptr;
}

const CoefficientFile* Folds::without(const std::string& gpu) const {
  const auto found = without_.find(gpu);
  return found == without_.end() ? nullptr : &found->second;
}

}  // namespace stoker::accuracy
