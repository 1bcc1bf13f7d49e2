// timing_layers NETWORKS [--coefficients FOLDER]: one-layer networks, for fitting and scoring.
//
// A developer's tool, not installed: scripts/fit-timing drives it, so that there is one list of
// kernels and one set of features. NETWORKS has one network a line, blank-separated:
//   GPU KIND BATCH IN OUT SIDE KERNEL STRIDE SAME BIAS ACTIVATION OPTIMIZER
// with KIND, ACTIVATION and OPTIMIZER as the numbers of their enums. Standard output gets, for each
// line, native doubles: the columns of LayerModel, the analytic milliseconds, the predicted ones,
// the remainder of the shape by kForestFolds, then the features of the trees. --fingerprint
// prints that of the features.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "accuracy/layers/layer_cost.h"
#include "accuracy/layers/layer_features.h"
#include "device/catalogue/gpu_catalogue.h"

namespace stoker::accuracy {
namespace {

Status answer(const std::string& line, const GpuCatalogue& catalogue,
              const LayerCoefficients& fitted, std::map<std::string, LayerModel>& models) {
  std::istringstream in(line);
  std::string name;
  LayerNetwork net;
  int kind = 0, activation = 0, optimizer = 0;
  in >> name >> kind >> net.batch >> net.in_channels >> net.out_channels >> net.in_side >>
      net.kernel >> net.stride >> net.same_padding >> net.bias >> activation >> optimizer;
  if (!in) return fail(ErrorCode::kBadInput, "not a network", line);
  net.kind = static_cast<LayerKind>(kind);
  net.activation = static_cast<LayerActivation>(activation);
  net.optimizer = static_cast<LayerOptimizer>(optimizer);
  auto found = models.find(name);
  if (found == models.end()) {
    auto gpu = TRY(catalogue.find(name));
    found = models.emplace(name, LayerModel(gpu, fitted.for_gpu(gpu))).first;
  }
  const auto columns = found->second.columns(net);
  std::fwrite(columns.data(), sizeof(double), columns.size(), stdout);
  const LayerCost cost = found->second.cost_of(net);
  const ForestInput input = layer_input(net, cost, columns);
  std::vector<double> rest{milliseconds(cost.analytic), milliseconds(cost.total),
                           static_cast<double>(input.shape % kForestFolds)};
  rest.insert(rest.end(), input.features.begin(),
              input.features.begin() + static_cast<std::ptrdiff_t>(layer_feature_names().size()));
  std::fwrite(rest.data(), sizeof(double), rest.size(), stdout);
  return {};
}

int run(const char* path, const char* folder) {
  const auto complain = [](const Error& error) {
    std::fprintf(stderr, "timing_layers: %s\n", error.text().c_str());
    return 3;
  };
  const auto fitted =
      folder == nullptr ? LayerCoefficients::load_fitted() : LayerCoefficients::load(folder);
  if (!fitted) return complain(fitted.error());
  const auto catalogue = GpuCatalogue::load();
  if (!catalogue) return complain(catalogue.error());
  std::ifstream in(path);
  std::map<std::string, LayerModel> models;
  for (std::string line; std::getline(in, line);) {
    if (auto s = answer(line, *catalogue, *fitted, models); !s) return complain(s.error());
  }
  return 0;
}

}  // namespace
}  // namespace stoker::accuracy

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--fingerprint") == 0) {
    std::printf("%016llx\n",
                static_cast<unsigned long long>(stoker::accuracy::layer_fingerprint()));
    return 0;
  }
  if (argc == 2) return stoker::accuracy::run(argv[1], nullptr);
  if (argc == 4 && std::strcmp(argv[2], "--coefficients") == 0)
    return stoker::accuracy::run(argv[1], argv[3]);
  std::fprintf(stderr, "usage: timing_layers NETWORKS [--coefficients FOLDER]\n");
  return 2;
}
