#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "step/step.h"

namespace stoker::accuracy {

/// A step that a measure needs.
struct CaptureRequest {
  /// "timm:resnet50"; a torchvision name may be written as people write it ("ConvNeXtTiny"); a file
  /// is below bench/accuracy: "hf_models.py:language_model".
  std::string spec;
  std::string precision;                         ///< of the capture: "fp32", "amp-fp16"
  std::optional<std::int64_t> image_size{};      ///< absent: the model's own
  std::map<std::string, std::string> options{};  ///< of the model's constructor: name -> JSON value
  std::map<std::string, std::int64_t> fixed{};   ///< dimensions held at one size
  std::string mode = "train";
  /// False: timm's own attention in separate operators, as before PyTorch 2
  /// (timm.layers.set_fused_attn).
  bool fused_attention = true;

  [[nodiscard]] std::string key() const;
  bool operator<(const CaptureRequest& other) const { return key() < other.key(); }
};

/// Step files made on demand by a Python interpreter and kept in a folder. The file name carries
/// the request and the versions that made it (PyTorch, the model's library, stoker), so that an
/// update makes new ones.
class CaptureStore {
 public:
  /// Asks the interpreter for its versions; an empty interpreter serves what the folder holds of
  /// any version.
  [[nodiscard]] static Result<CaptureStore> open(std::filesystem::path folder, std::string python,
                                                 int jobs);

  /// Makes what is missing, `jobs` at a time, with progress on stderr.
  [[nodiscard]] Status prepare(const std::vector<CaptureRequest>& requests);

  /// The step, or why there is none. Steps are read once; the newest few are kept.
  [[nodiscard]] Result<std::shared_ptr<const Step>> get(const CaptureRequest& request);

  [[nodiscard]] const std::string& versions() const { return versions_text_; }

 private:
  [[nodiscard]] std::filesystem::path path_of(const CaptureRequest& request) const;

  std::filesystem::path folder_;
  std::string python_;
  int jobs_ = 1;
  std::map<std::string, std::string> versions_;  ///< package -> version
  std::string versions_text_;
  std::map<std::string, std::string> failures_;  ///< path -> reason
  std::string last_path_;
  std::shared_ptr<const Step> last_;
};

}  // namespace stoker::accuracy
