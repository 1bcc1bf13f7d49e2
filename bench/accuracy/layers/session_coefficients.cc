#include "accuracy/layers/session_coefficients.h"

namespace stoker::accuracy {
namespace {

constexpr std::array<std::string_view, kLayerOptimizers> kOptimizerNames{
    "none", "sgd", "momentum", "adagrad", "rmsprop", "adam", "adadelta"};

constexpr std::array<std::string_view, kLayerParts> kPartNames{"convolution",
                                                               "convolution_input",
                                                               "convolution_weight",
                                                               "product",
                                                               "product_input",
                                                               "product_weight",
                                                               "layout",
                                                               "layout_backward",
                                                               "padding",
                                                               "activation",
                                                               "activation_gradient",
                                                               "bias",
                                                               "bias_gradient",
                                                               "filter",
                                                               "input",
                                                               "output",
                                                               "loss",
                                                               "gradient",
                                                               "update_sgd",
                                                               "update_momentum",
                                                               "update_adagrad",
                                                               "update_rmsprop",
                                                               "update_adam",
                                                               "update_adadelta",
                                                               "input_work",
                                                               "output_work",
                                                               "padding_work",
                                                               "loss_work"};

}  // namespace

std::string_view name_of(LayerOptimizer optimizer) {
  return kOptimizerNames[static_cast<std::size_t>(optimizer)];
}

std::string_view name_of(LayerPart part) { return kPartNames[static_cast<std::size_t>(part)]; }

/// Priors: kernels at 70-80 % of the data sheet, passes as an optimizer's arithmetic needs them,
/// and the fixed times of a call on hosts of 2018.
SessionCoefficients::SessionCoefficients()
    : part{1.4, 1.4, 1.4, 1.3, 1.3, 1.3, 1.3, 1.3, 2, 1.3, 1.3, 1.3, 1.5, 1.5,
           1,   1,   8,   2,   3,   5,   5,   7,   7, 7,   0,   0,   0,   0},
      convolution_us{250, 350, 380, 390, 420, 420, 430},
      dense_us{200, 300, 320, 330, 360, 370, 380} {}

}  // namespace stoker::accuracy
