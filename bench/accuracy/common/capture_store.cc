#include "accuracy/common/capture_store.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "accuracy/common/statistics.h"
#include "base/files.h"
#include "json/text.h"
#include "step/step_reader.h"

namespace stoker::accuracy {
namespace {

using Json = json::Value;
namespace fs = std::filesystem;

constexpr std::size_t kLongestStem = 120;  // file names end at 255 bytes
constexpr std::array<std::string_view, 4> kPackages{"torch", "timm", "torchvision", "transformers"};

std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string for_file_name(std::string text) {
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_' && c != '-' &&
        c != '+')
      c = '_';
  }
  return text;
}

/// Calls `line` for each line that the command prints; false when it cannot be run or fails.
template <class Line>
bool run_lines(const std::string& command, Line&& line) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return false;
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c != '\n') {
      text += static_cast<char>(c);
    } else {
      line(std::exchange(text, {}));
    }
  }
  if (!text.empty()) line(text);
  return pclose(pipe) == 0;
}

std::string python_path() {
  const char* given = std::getenv("PYTHONPATH");
  return std::string("PYTHONPATH=") +
         shell_quoted(std::string(STOKER_SOURCE_DIR) + "/python" +
                      (given != nullptr ? ":" + std::string(given) : ""));
}

}  // namespace

std::string CaptureRequest::key() const {
  std::string text =
      spec + "-" + precision + "-" + (image_size ? std::to_string(*image_size) : "native");
  if (mode != "train") text += "-" + mode;
  if (!fused_attention) text += "-unfused";
  for (const auto& [name, value] : fixed) text += "-" + name + std::to_string(value);
  for (const auto& [name, value] : options) text += "-" + name + "=" + value;
  return text;
}

Result<CaptureStore> CaptureStore::open(fs::path folder, std::string python, int jobs) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(ErrorCode::kIo,
                "cannot be created (" + error.message() + "); choose another with --cache",
                folder.string());
  CaptureStore store;
  store.folder_ = std::move(folder);
  store.python_ = std::move(python);
  store.jobs_ = jobs;
  if (store.python_.empty()) return store;
  std::string script =
      "import importlib.metadata as m\nimport stoker.version as v\nprint('stoker', v.VERSION)\n";
  for (const std::string_view package : kPackages) {
    script += "try: print('" + std::string(package) + "', m.version('" + std::string(package) +
              "'))\nexcept Exception: pass\n";
  }
  const bool ran =
      run_lines(python_path() + " " + shell_quoted(store.python_) + " -c " + shell_quoted(script),
                [&](const std::string& line) {
                  const auto space = line.find(' ');
                  if (space == std::string::npos) return;
                  store.versions_[line.substr(0, space)] = line.substr(space + 1);
                  store.versions_text_ += (store.versions_text_.empty() ? "" : ", ") + line;
                });
  if (!ran || store.versions_.count("torch") == 0) {
    return fail(ErrorCode::kBadInput,
                "is no Python that has torch; give one that has torch, timm and torchvision",
                "--python " + store.python_);
  }
  return store;
}

fs::path CaptureStore::path_of(const CaptureRequest& request) const {
  std::string stem = for_file_name(request.key());
  if (stem.size() > kLongestStem) {
    stem = stem.substr(0, kLongestStem) + "-" + std::to_string(hash_of(request.key(), 0));
  }
  if (python_.empty()) {  // whatever version there is
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind(stem + "-torch", 0) == 0 && name.size() > 8 &&
          name.substr(name.size() - 8) == ".step.gz")
        return entry.path();
    }
    return folder_ / (stem + ".step.gz");
  }
  std::string made_by = "-torch" + versions_.at("torch");
  const bool is_file = request.spec.find(".py:") != std::string::npos;  // those use transformers
  const std::string library =
      is_file ? "transformers" : request.spec.substr(0, request.spec.find(':'));
  if (const auto it = versions_.find(library); it != versions_.end())
    made_by += "-" + library + it->second;
  made_by += "-stoker" + versions_.at("stoker");
  return folder_ / (stem + for_file_name(made_by) + ".step.gz");
}

Status CaptureStore::prepare(const std::vector<CaptureRequest>& requests) {
  if (python_.empty()) return {};
  std::string list;
  std::set<fs::path> missing;
  for (const CaptureRequest& request : requests) {
    const fs::path path = path_of(request);
    if (fs::exists(path) || !missing.insert(path).second) continue;
    Json job{{"spec", request.spec},
             {"precision", request.precision},
             {"out", path.string()},
             {"image_size", nullptr},
             {"mode", request.mode},
             {"fixed", request.fixed},
             {"fused_attention", request.fused_attention}};
    if (request.image_size) job["image_size"] = *request.image_size;
    for (const auto& [name, value] : request.options)
      job["options"][name] = json::parse(value).value_or(Json());
    list += job.dump() + "\n";
  }
  if (missing.empty()) return {};
  std::fprintf(stderr, "%zu of %zu captures to make, kept in %s\n", missing.size(), requests.size(),
               folder_.c_str());
  const fs::path jobs = folder_ / "jobs.jsonl";
  if (auto status = write_file(jobs, list); !status) return status;
  const std::string command =
      python_path() + " " + shell_quoted(python_) + " " +
      shell_quoted(std::string(STOKER_SOURCE_DIR) + "/bench/accuracy/capture_many.py") + " " +
      shell_quoted(jobs.string()) + " --jobs " + std::to_string(jobs_);
  const bool ran = run_lines(command, [&](const std::string& line) {
    const Json result = json::parse(line).value_or(Json());
    if (result.is_object() && result.contains("error") && result["error"].is_string()) {
      failures_[result.value("out", "")] = result["error"].as_string();
    }
  });
  if (!ran)
    return fail(ErrorCode::kBadInput, "capturing stopped with an error (see above)",
                "--python " + python_);
  return {};
}

Result<std::shared_ptr<const Step>> CaptureStore::get(const CaptureRequest& request) {
  const std::string path = path_of(request).string();
  if (path == last_path_) return last_;
  if (!fs::exists(path)) {
    const auto it = failures_.find(path);
    return fail(ErrorCode::kNotFound, it != failures_.end()
                                          ? it->second
                                          : "not in the cache, and no --python to capture with");
  }
  auto step = TRY(read_step_file(path));
  last_path_ = path;
  last_ = std::make_shared<const Step>(std::move(step));
  return last_;
}

}  // namespace stoker::accuracy
