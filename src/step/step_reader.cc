#include "step/step_reader.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/files.h"
#include "json/text.h"
#include "step/json_fields.h"
#include "step/lost_compiler.h"
#include "step/step_names.h"

namespace stoker {
namespace {

constexpr std::int64_t kMaxEvents = 4'000'000;
constexpr Bytes kMaxJson{512LL << 20};

template <class Value, std::size_t N>
Value lookup(const std::array<std::pair<std::string_view, Value>, N>& table, const Json& value,
             const std::string& field) {
  if (value.is_string()) {
    const auto& name = value.as_string();
    for (const auto& [key, result] : table) {
      if (key == name) return result;
    }
    refuse(field, "\"" + name.substr(0, 40) + "\" is not known to this version");
  }
  refuse(field, "must be a name");
}

/// Builds a Step from parsed JSON; one function a part of the file.
class Builder {
 public:
  explicit Builder(const Json& root) : root_(root) {}

  Step build() {
    read_header();
    read_dimensions();
    read_strings();
    read_types();
    read_storages();
    read_parameters();
    read_named("buffers", step_.buffers);
    read_named("inputs", step_.inputs);
    read_optimizer();
    read_training();
    read_compiled();
    read_diagnostics();
    read_events();
    return std::move(step_);
  }

 private:
  void read_header() {
    if (!root_.is_object() || text(root_, "format") != "stoker-step") {
      refuse("", "is not a step file; write one with `stoker capture`");
    }
    const Json& version = array(member(root_, "schema_version", ""), "schema_version");
    if (version.size() != 2) refuse("schema_version", "must be [major, minor]");
    const auto major = integer(version[0], "schema_version", 0, 1'000'000);
    if (major != kStepSchemaMajor) {
      throw std::pair<std::int64_t, int>(major, kStepSchemaMajor);
    }
    step_.name = text(root_, "name", "unnamed");
    step_.mode = text(root_, "mode", "train");
    if (step_.mode != "train" && step_.mode != "forward" && step_.mode != "inference")
      refuse("mode", "must be train, forward or inference");
    step_.precision = text(root_, "precision", "fp32");
    const Json& from = member(root_, "provenance", "");
    if (!from.is_object()) refuse("provenance", "must be an object");
    Provenance& p = step_.provenance;
    p.spec = text(from, "spec");
    p.torch = text(from, "torch");
    p.python = text(from, "python");
    p.stoker = text(from, "stoker");
    p.date = text(from, "date");
    p.event_hash = text(from, "event_hash");
    p.capture = lookup(kCaptures, member(from, "capture", "provenance"), "provenance.capture");
    if (const Json* it = from.find("libraries"); it != nullptr && it->is_object()) {
      for (const auto& [name, value] : it->items()) {
        if (value.is_string()) p.libraries[name] = value.as_string();
      }
    }
    read_sources(from);
    if (const Json* it = root_.find("sample"); it != nullptr && it->is_object()) {
      step_.sample_what = text(*it, "what", "sample");
    }
  }

  void read_sources(const Json& provenance) {
    const auto crc32 = [](const Json* value, const std::string& field) {
      return value == nullptr || value->is_null() ? std::nullopt
                                                  : std::optional(static_cast<std::uint32_t>(
                                                        integer(*value, field, 0, 0xffff'ffffLL)));
    };
    if (const Json* list = provenance.find("sources"); list != nullptr && list->is_array()) {
      const std::string field = "provenance.sources";
      for (const Json& row : *list) {
        if (!row.is_object()) refuse(field, "must be objects");
        const Json* entries = row.find("entries");
        const Json* size = entries == nullptr ? row.find("bytes") : entries;
        step_.provenance.sources.push_back(
            {text(row, "file"),
             size == nullptr ? 0 : integer(*size, field + ".bytes", 0, 1LL << 60),
             crc32(row.find("crc32"), field + ".crc32"),
             row.contains("absent") ? SourceKind::kAbsent
             : entries != nullptr   ? SourceKind::kFolder
                                    : SourceKind::kFile});
      }
    }
    if (const Json* read = provenance.find("environment"); read != nullptr && read->is_object()) {
      for (const auto& [name, value] : read->items())
        step_.provenance.environment[name] = crc32(&value, "provenance.environment");
    }
  }

  void read_dimensions() {
    const Json& list = array(member(root_, "dimensions", ""), "dimensions");
    if (list.empty() || list.size() > kMaxDimensions) {
      refuse("dimensions", "must name 1 to " + std::to_string(kMaxDimensions) + " dimensions");
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string field = at("dimensions", i);
      const Json& from = list[i];
      if (!from.is_object()) refuse(field, "must be an object");
      Dimension d;
      d.name = text(from, "name");
      const auto number = [&](const char* key, std::int64_t otherwise, std::int64_t low) {
        const Json* it = from.find(key);
        return it == nullptr || it->is_null() ? otherwise
                                              : integer(*it, field + "." + key, low, 1LL << 40);
      };
      d.unit = number("unit", 1, 1);
      d.minimum = number("min", 1, 0);
      d.maximum = number("max", 0, 0);
      d.default_value = number("default", 1, 1);
      if (d.name.empty() || (i == 0) != (d.name == "batch"))
        refuse(field, "the first dimension must be batch");
      if (d.default_value % d.unit != 0) refuse(field, "default is no multiple of unit");
      step_.dimensions.push_back(std::move(d));
    }
  }

  Polynomial polynomial(const Json& value, const std::string& field) const {
    return read_polynomial(value, step_.dimensions, field);
  }

  void read_strings() {
    const Json& strings = member(root_, "strings", "");
    read_names(strings, "operators", step_.operator_names);
    read_names(strings, "modules", step_.module_names);
    if (step_.module_names.empty()) step_.module_names.emplace_back();
  }

  template <class Name>
  static void read_names(const Json& strings, const char* key, std::vector<Name>& into) {
    const std::string field = std::string("strings.") + key;
    for (const Json& name : array(member(strings, key, "strings"), field)) {
      if (!name.is_string()) refuse(field, "must be strings");
      into.emplace_back(name.as_string());
    }
  }

  void read_types() {
    const Json& list = array(member(root_, "types", ""), "types");
    step_.types.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string field = at("types", i);
      const Json& from = array(list[i], field);
      if (from.size() < 2 || from.size() > 3)
        refuse(field, "must be [dtype, shape] or [dtype, shape, order]");
      TensorType type;
      type.dtype = lookup(kDTypeNames, from[0], field);
      for (const Json& side : array(from[1], field)) type.shape.push_back(polynomial(side, field));
      if (from.size() == 3) read_order(from[2], field, type);
      step_.types.push_back(std::move(type));
    }
  }

  static void read_order(const Json& order, const std::string& field, TensorType& type) {
    if (order.is_string() && order.as_string() == "strided") {
      type.layout = Layout::kStrided;
      return;
    }
    type.layout = Layout::kPermuted;
    for (const Json& d : array(order, field)) {
      type.order.push_back(static_cast<std::uint8_t>(
          integer(d, field, 0, static_cast<std::int64_t>(type.shape.size()) - 1)));
    }
    auto sorted = type.order;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.size() != type.shape.size() ||
        std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      refuse(field, "order is no permutation of the dimensions");
    }
  }

  void read_storages() {
    const Json& list = array(member(root_, "storages", ""), "storages");
    step_.storages.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string field = at("storages", i);
      const Json& from = array(list[i], field);
      if (from.size() != 2) refuse(field, "must be [bytes, kind]");
      step_.storages.push_back({polynomial(from[0], field), lookup(kKinds, from[1], field)});
    }
  }

  TypeId type_id(const Json& value, const std::string& field) const {
    return TypeId(integer(value, field, 0, static_cast<std::int64_t>(step_.types.size()) - 1));
  }
  StorageId storage_id(const Json& value, const std::string& field) const {
    return StorageId(
        integer(value, field, 0, static_cast<std::int64_t>(step_.storages.size()) - 1));
  }

  void read_parameters() {
    const Json& list = array(member(root_, "parameters", ""), "parameters");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string field = at("parameters", i);
      const Json& from = list[i];
      if (!from.is_object()) refuse(field, "must be an object");
      Parameter p;
      p.name = text(from, "name");
      p.type = type_id(member(from, "type", field), field + ".type");
      p.storage = storage_id(member(from, "storage", field), field + ".storage");
      p.requires_grad = from["requires_grad"] != Json(false);
      if (const Json* it = from.find("gradient"); it != nullptr && !it->is_null()) {
        p.gradient = static_cast<std::int64_t>(index(storage_id(*it, field + ".gradient")));
      }
      if (const Json* it = from.find("group"); it != nullptr) {
        p.group = static_cast<std::int32_t>(integer(*it, field + ".group", 0, 1'000'000));
      }
      if (const Json* it = from.find("updated"); it != nullptr && !flag(*it, field + ".updated")) {
        p.group = -1;
      }
      step_.parameters.push_back(std::move(p));
    }
  }

  void read_named(const char* key, std::vector<NamedTensor>& into) const {
    const Json& list = array(member(root_, key, ""), key);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string field = at(key, i);
      if (!list[i].is_object()) refuse(field, "must be an object");
      into.push_back({text(list[i], "name"),
                      type_id(member(list[i], "type", field), field + ".type"),
                      storage_id(member(list[i], "storage", field), field + ".storage")});
    }
  }

  void read_optimizer() {
    const Json* it = root_.find("optimizer");
    if (it == nullptr || !it->is_object()) return;
    step_.optimizer.name = text(*it, "name");
    step_.optimizer.class_name = text(*it, "class");
    step_.optimizer.in_backward = text(*it, "in_backward");
    const Json* groups = it->find("groups");
    if (groups == nullptr || !groups->is_array()) return;
    for (const Json& from : *groups) {
      CapturedOptimizer::Group group;
      group.name = text(from, "optimizer");
      for (const auto& [key, value] : from.items()) {
        if (value.is_number()) group.numbers[key] = value.as_double();
        if (value.is_bool()) group.numbers[key] = value.as_bool() ? 1 : 0;
      }
      step_.optimizer.groups.push_back(std::move(group));
    }
  }

  void read_compiled() {
    const Json* it = root_.find("compiled");
    if (it == nullptr) return;
    if (!it->is_object()) refuse("compiled", "must be an object");
    const Json* graphs = it->find("graphs");
    if (graphs == nullptr) refuse("compiled.graphs", "is missing");
    step_.compiled_graphs = integer(*graphs, "compiled.graphs", 0, 1 << 24);
    if (step_.compiled_graphs == 0) step_.compiled_graphs = kCompilerLost;
  }

  void read_training() {
    const Json* it = root_.find("training");
    if (it == nullptr) return;
    if (!it->is_object()) refuse("training", "must be an object");
    CapturedTraining& training = step_.training;
    for (const auto& [key, into] :
         {std::pair{"clip", &training.clip}, std::pair{"ema", &training.ema},
          std::pair{"grad_scaler", &training.grad_scaler}}) {
      if (const Json* said = it->find(key); said != nullptr) {
        *into = flag(*said, std::string("training.") + key);
      }
    }
    read_sentences(it->find("averages"), training.averages);
  }

  void read_diagnostics() {
    const Json* it = root_.find("diagnostics");
    if (it == nullptr || !it->is_object()) return;
    const auto number = [&](const char* key) {
      const Json* found = it->find(key);
      return found == nullptr ? 0 : integer(*found, std::string("diagnostics.") + key, 0, 1 << 30);
    };
    step_.item_calls = number("item_calls");
    step_.math_attention = number("math_attention");
    if (const Json* list = it->find("decomposed"); list != nullptr && list->is_object()) {
      for (const auto& [name, count] : list->items()) {
        step_.decomposed[name] = integer(count, "diagnostics.decomposed", 0, 1 << 30);
      }
    }
    read_sentences(it->find("unfaithful"), step_.unfaithful);
    read_sentences(it->find("warnings"), step_.warnings);
    if (const Json* reads = it->find("reads"); reads != nullptr && reads->is_object()) {
      for (const auto& [place, value] : reads->items()) {
        if (value.is_bool()) step_.reads[place] = value.as_bool() ? "true" : "false";
        if (value.is_number()) step_.reads[place] = number_text(value.as_double());
        if (value.is_string()) step_.reads[place] = value.as_string();
      }
    }
  }

  static void read_sentences(const Json* list, std::vector<std::string>& into) {
    if (list == nullptr || !list->is_array()) return;
    for (const Json& sentence : *list) {
      if (sentence.is_string()) into.push_back(sentence.as_string());
    }
  }

  static std::string number_text(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%g", value);
    return text.data();
  }

  std::vector<TensorRef> tensors(const Json& from, const std::string& field) const {
    std::vector<TensorRef> result;
    const Json& list = array(from, field);
    if (list.size() % 2 != 0) refuse(field, "tensors must be pairs of type and storage");
    result.reserve(list.size() / 2);
    for (std::size_t i = 0; i < list.size(); i += 2) {
      result.push_back({type_id(list[i], field), storage_id(list[i + 1], field)});
    }
    return result;
  }

  void read_operator(const Json& from, const std::string& field) {
    if (from.size() < 2 || from.size() > 7) refuse(field, "an operator has 1 to 6 fields");
    Operator op;
    op.name = NameId(
        integer(from[1], field, 0, static_cast<std::int64_t>(step_.operator_names.size()) - 1));
    if (from.size() > 2) {
      op.module = ModuleId(
          integer(from[2], field, 0, static_cast<std::int64_t>(step_.module_names.size()) - 1));
    }
    if (from.size() > 3)
      op.link = static_cast<std::uint32_t>(integer(from[3], field, 0, 0xffffffffLL));
    if (from.size() > 4) op.inputs = tensors(from[4], field);
    if (from.size() > 5) op.outputs = tensors(from[5], field);
    if (from.size() > 6 && !from[6].empty()) {
      op.attributes = static_cast<std::uint32_t>(step_.attributes.size());
      step_.attributes.push_back(read_attributes(from[6], field));
    }
    step_.events.push_back(
        {EventKind::kOperator, static_cast<std::uint32_t>(step_.operators.size())});
    step_.operators.push_back(std::move(op));
  }

  void read_events() {
    step_.attributes.emplace_back();
    const Json& list = array(member(root_, "events", ""), "events");
    if (static_cast<std::int64_t>(list.size()) > kMaxEvents)
      refuse("events", "has more than 4,000,000 entries");
    step_.events.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Json& from = list[i];
      if (!from.is_array() || from.empty() || !from[0].is_string())
        refuse(at("events", i), "is no event");
      const auto& kind = from[0].as_string();
      if (kind == "o") {
        read_operator(from, at("events", i));
      } else if ((kind == "a" || kind == "f") && from.size() == 2) {
        step_.events.push_back(
            {kind == "a" ? EventKind::kAllocate : EventKind::kFree,
             static_cast<std::uint32_t>(index(storage_id(from[1], at("events", i))))});
      } else if (kind == "p" && from.size() == 2) {
        step_.events.push_back({EventKind::kPhase, static_cast<std::uint32_t>(
                                                       lookup(kPhases, from[1], at("events", i)))});
      } else if (kind == "s") {
        step_.events.push_back({EventKind::kSynchronize, 0});
      } else {
        refuse(at("events", i), "is no event of version 1");
      }
    }
  }

  const Json& root_;
  Step step_;
};

}  // namespace

Result<Step> parse_step(std::string_view json, const std::string& where) {
  const auto root = json::parse(json);
  if (!root) {
    return fail(ErrorCode::kBadInput,
                "is not valid JSON (cut short?); write it again with `stoker capture`", where);
  }
  try {
    Step step = Builder(*root).build();
    TRY(check_lifetimes(step, where));
    return step;
  } catch (const Refusal& refusal) {
    return fail(ErrorCode::kBadInput,
                (refusal.field.empty() ? refusal.message
                                       : refusal.field + " " + refusal.message +
                                             "; write the file again with `stoker capture`"),
                where);
  } catch (const std::pair<std::int64_t, int>& versions) {
    const bool newer = versions.first > versions.second;
    return fail(newer ? ErrorCode::kTooNew : ErrorCode::kBadInput,
                "is a step file of version " + std::to_string(versions.first) +
                    ", this stoker reads version " + std::to_string(versions.second) +
                    (newer ? "; update stoker" : "; capture the model again"),
                where);
  }
}

Result<Step> read_step_file(const std::filesystem::path& path) {
  const auto json = TRY(read_gzip_file(path, kMaxJson));
  return parse_step(json, path.string());
}

}  // namespace stoker
