#include "scenario/sources/script_model.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "device/catalogue/gpu_catalogue.h"
#include "json/text.h"
#include "step/step_reader.h"

namespace stoker {
namespace fs = std::filesystem;
namespace {

/// Step files of scripts are as large as any (step_reader.h).
constexpr Bytes kLargestStepFile{512LL << 20};
constexpr int kNewestCapability = 90;  ///< for a GPU that has none of NVIDIA's

/// What the script is told of its GPU: VENDOR NAME;BYTES;8.0;COUNT;PROCESSORS.
std::string gpu_words(const RunRequest& r, const Machine& machine) {
  const Gpu* gpu = machine.device.gpu();
  if (gpu == nullptr) return {};
  const int capability = gpu->compute_capability > 0 ? gpu->compute_capability : kNewestCapability;
  const std::int64_t count = std::max<std::int64_t>(1, r.gpus.value_or(1));
  return std::string(name_of(gpu->vendor)) + " " + gpu->name + ";" +
         std::to_string(gpu->memory.count()) + ";" + std::to_string(capability / 10) + "." +
         std::to_string(capability % 10) + ";" + std::to_string(count) +
         (gpu->sm_count > 0 ? ";" + std::to_string(gpu->sm_count) : std::string());
}

/// Where the capture is remembered: under all that was asked of it, and the folder that relative
/// paths among the arguments start from.
fs::path remembered_script(const RunRequest& r, const std::string& gpu,
                           const std::string& precision, const std::string& interpreter) {
  std::error_code ignored;
  const fs::path folder = fs::current_path(ignored);
  std::string text = (folder / r.model).lexically_normal().string() + "|" + folder.string() + "|" +
                     gpu + "|" + precision + "|" + r.script.batch_argument + "|" + interpreter;
  for (const std::string& word : r.script.arguments) text += "|" + word;
  std::string name;
  for (const char c : fs::path(r.model).stem().string())
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return cache_folder() / "scripts" / (name + "-" + std::to_string(fnv1a(text)) + ".step.gz");
}

/// Whether every file that the script was read from is as it was.
bool is_up_to_date(const json::Value& step_file) {
  const json::Value* script = step_file.find("script");
  const json::Value* sources = script == nullptr ? nullptr : script->find("sources");
  if (sources == nullptr || !sources->is_array() || sources->empty()) return false;
  return std::all_of(sources->begin(), sources->end(), [](const json::Value& row) {
    struct stat now {};
    if (!row.is_array() || row.size() != 3 || !row[0].is_string()) return false;
    if (::stat(row[0].as_string().c_str(), &now) != 0) return false;
    const std::int64_t changed = now.st_mtim.tv_sec * 1'000'000'000LL + now.st_mtim.tv_nsec;
    return row[1] == json::Value(static_cast<std::int64_t>(now.st_size)) &&
           row[2] == json::Value(changed);
  });
}

/// The remembered step file; null where there is none that is still good.
json::Value recalled(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  const auto text = read_gzip_file(path, kLargestStepFile);
  if (!text) return {};
  auto document = json::parse(*text);
  return document && document->is_object() && is_up_to_date(*document) ? std::move(*document)
                                                                       : json::Value{};
}

struct CapturedScript {
  std::shared_ptr<const Step> step;
  ScriptFindings findings;
};

/// The capture in this precision; "": as the script has it.
Result<CapturedScript> captured(const RunRequest& r, const Machine& machine,
                                const std::string& precision, const ScenarioTools& tools) {
  const std::string gpu = gpu_words(r, machine);
  const fs::path path = remembered_script(r, gpu, precision, tools.interpreter);
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error)
    return fail(ErrorCode::kIo, "cannot be made: " + error.message() + "; set XDG_CACHE_HOME",
                path.parent_path().string());
  if (!r.capture.again) {
    const json::Value known = recalled(path);
    // What this Stoker cannot read another one may have written: it is captured again then.
    if (known.is_object()) {
      if (auto step = read_step_file(path))
        return CapturedScript{std::make_shared<const Step>(std::move(*step)), read_findings(known)};
    }
  }
  CaptureOrder order;
  order.spec = r.model;
  order.into = path;
  order.script.emplace();
  if (!precision.empty()) order.script->insert(order.script->end(), {"--precision", precision});
  if (gpu.empty()) order.script->insert(order.script->end(), {"--device", "cpu"});
  else order.script->insert(order.script->end(), {"--gpu", gpu});
  if (!r.script.batch_argument.empty())
    order.script->push_back("--batch-arg=" + r.script.batch_argument);
  order.script->push_back("--");
  order.script->insert(order.script->end(), r.script.arguments.begin(), r.script.arguments.end());
  TRY(tools.capture(order));
  const auto text = TRY(read_gzip_file(path, kLargestStepFile));
  const auto document = json::parse(text);
  auto step = TRY(read_step_file(path));
  return CapturedScript{std::make_shared<const Step>(std::move(step)),
                        document ? read_findings(*document) : ScriptFindings()};
}

bool wants_tf32(const ScriptFindings& findings) {
  return std::any_of(findings.found.begin(), findings.found.end(), [](const ScriptFinding& f) {
    return f.setting == "tf32" && f.number.value_or(0) != 0;
  });
}

/// fp32's two kinds of kernels serve one capture: the script says which it means.
void prefer_tf32(ScriptModel& script) {
  if (wants_tf32(script.findings))
    std::reverse(script.model.variants.begin(), script.model.variants.end());
}

}  // namespace

bool is_script(const std::string& model) {
  // What Python runs, or what the capture refuses with the line that starts Python.
  constexpr std::array kSuffixes{".py",    ".sh",     ".bash", ".zsh",
                                 ".slurm", ".sbatch", ".bat",  ".ipynb"};
  return std::any_of(kSuffixes.begin(), kSuffixes.end(),
                     [&](const char* suffix) { return model.ends_with(suffix); });
}

Result<ScriptModel> load_script(const RunRequest& r, const Machine& machine,
                                const ScenarioTools& tools) {
  ScriptModel out{{fs::path(r.model).stem().string(), {}}, {}};
  if (r.precisions.empty()) {
    CapturedScript own = TRY(captured(r, machine, "", tools));
    out.findings = std::move(own.findings);
    for (const Precision p : default_precisions(machine.device->peak)) {
      if (capture_precision(p) == own.step->precision) out.model.variants.push_back({p, own.step});
    }
    if (out.model.variants.empty())
      out.model.variants.push_back(
          {parse_precision(own.step->precision).value_or(Precision::kFp32), own.step});
    prefer_tf32(out);
    return out;
  }
  for (const Precision p : r.precisions) {
    CapturedScript one = TRY(captured(r, machine, std::string(capture_precision(p)), tools));
    out.model.variants.push_back({p, one.step});
    out.findings = std::move(one.findings);
  }
  return out;
}

Result<ScriptModel> with_its_script(LoadedModel model, const RunRequest& r) {
  ScriptModel out{std::move(model), {}};
  std::error_code ignored;
  // A capture through a function names it behind the file.
  const bool of_script = is_script(out.model.variants.front().step->provenance.spec);
  if (!of_script || !fs::is_regular_file(r.model, ignored)) return out;
  const auto text = TRY(read_gzip_file(r.model, kLargestStepFile));
  if (const auto document = json::parse(text)) out.findings = read_findings(*document);
  if (r.precisions.empty()) prefer_tf32(out);
  return out;
}

}  // namespace stoker
