#include "operators/family.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "operators/cpu_functions.h"
#include "operators/operator_name.h"

namespace stoker {
namespace {

KernelClass class_of(const char* name) { return family_of(name).kernel_class; }

TEST(Family, NamesFindTheirClass) {
  EXPECT_EQ(class_of("aten::relu_"), KernelClass::kElementwise);
  EXPECT_EQ(class_of("aten::native_layer_norm_backward"), KernelClass::kNormalization);
  EXPECT_EQ(class_of("aten::add.Tensor"), KernelClass::kElementwise);
  EXPECT_EQ(class_of("aten::__lshift__.Scalar"), KernelClass::kElementwise);
  EXPECT_EQ(class_of("aten::_log_softmax_backward_data"), KernelClass::kSoftmax);
  EXPECT_EQ(class_of("aten::mse_loss"), KernelClass::kReduction);
  EXPECT_EQ(class_of("aten::mse_loss_backward"), KernelClass::kElementwise);
  EXPECT_EQ(class_of("my::own_operator"), KernelClass::kUncosted);
  EXPECT_EQ(class_of("my::add"), KernelClass::kUncosted);  // whatever that is
  EXPECT_EQ(class_of("aten::_foreach_add_.Scalar"), KernelClass::kOptimizer);
  EXPECT_EQ(class_of("aten::_scaled_dot_product_flash_attention"), KernelClass::kAttention);
}

TEST(Family, WhatLaunchesNothing) {
  EXPECT_EQ(family_of("aten::empty_strided").rule, WorkRule::kNothing);
  EXPECT_EQ(family_of("my::empty").rule, WorkRule::kNothing);
  EXPECT_EQ(family_of("aten::transpose_").rule, WorkRule::kNothing);
  EXPECT_NE(family_of("aten::transpose_copy").rule, WorkRule::kNothing);
  EXPECT_NE(family_of("aten::zeros").rule, WorkRule::kNothing);
  EXPECT_NE(family_of("aten::detach_copy").rule, WorkRule::kNothing);
}

TEST(Family, DerivedFormsOfANameThatStandsForItself) {
  EXPECT_EQ(family_of("aten::index_select").rule, WorkRule::kGather);
  EXPECT_EQ(family_of("aten::index_select_backward").rule, WorkRule::kPlain);
  EXPECT_EQ(family_of("aten::index_select_backward").kernel_class, KernelClass::kGather);
  EXPECT_EQ(family_of("aten::rms_norm_backward").rule, WorkRule::kRows);
  EXPECT_EQ(family_of("aten::convolution_backward").rule, WorkRule::kConvolution);
  EXPECT_EQ(family_of("aten::native_batch_norm_backward").rule, WorkRule::kPlain);
}

TEST(Family, StokersOwnKeepTheirNamespace) {
  EXPECT_EQ(family_of("stoker::attention_backward").kernel_class, KernelClass::kAttention);
  EXPECT_EQ(family_of("stoker::all_gather").collective, CollectiveKind::kAllGather);
  EXPECT_EQ(family_of("stoker::reduce_scatter").collective, CollectiveKind::kReduceScatter);
  EXPECT_EQ(family_of("stoker::all_gather_copy_in").kernel_class, KernelClass::kCopy);
  EXPECT_EQ(class_of("aten::scatter"), KernelClass::kGather);
}

TEST(OperatorName, KnowsItsParts) {
  const OperatorName name("aten::gelu_backward.grad_input");
  EXPECT_EQ(name.function(), "gelu_backward");
  EXPECT_TRUE(name.backward());
  EXPECT_EQ(name.family().name, "elementwise");
  const OperatorName copy = OperatorName("aten::add_.Tensor");  // survives a move
  EXPECT_EQ(copy.function(), "add_");
  EXPECT_EQ(stem_of(copy.text()), "add");
  EXPECT_EQ(OperatorName("plain").function(), "plain");
}

// A family added to the table is answered for everywhere: whoever walks the rows finds all that the
// consumers ask of it.
TEST(OperatorTable, EveryConsumerAnswersForEveryRow) {
  std::set<std::string_view> names;
  for (const OperatorFamily& family : operator_families()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name << " twice";
    const KernelClassRow& row = row_of(family.kernel_class);
    EXPECT_EQ(row.kernel_class, family.kernel_class);
    EXPECT_EQ(kernel_class_named(row.name), family.kernel_class);
    EXPECT_FALSE(name_of(row.cpu_group).empty());
    EXPECT_GT(row.cpu.vectors, 0) << row.name;
    for (const CostClass cost :
         {row.cost, row.cost_backward, row.cost_rows, row.cost_rows_backward}) {
      EXPECT_FALSE(row_of(cost).name.empty());
      EXPECT_GT(row_of(cost).prior.memory, 0) << row_of(cost).name;
      EXPECT_GT(row_of(cost).prior.compute, 0) << row_of(cost).name;
      EXPECT_GT(row_of(cost).prior.spread, 0) << row_of(cost).name;
    }
    EXPECT_FALSE(row.learned && name_of(*row.learned).empty());
  }
}

TEST(OperatorTable, EveryNameFindsItsOwnRow) {
  for (const OperatorFamily& family : operator_families()) {
    std::string_view rest = family.operators;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      const std::string name(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (name.find('*') != std::string::npos) continue;
      const std::string full = name.find("::") == std::string::npos ? "aten::" + name : name;
      EXPECT_EQ(&family_of(full), &family) << full;
    }
  }
}

TEST(CpuFunctions, AreOperatorsOfTheTable) {
  for (const CpuFunction& function : cpu_functions()) {
    EXPECT_NE(family_of("aten::" + std::string(function.name)).name, "uncosted") << function.name;
    EXPECT_TRUE(has_cpu_function(function.name));
  }
  EXPECT_EQ(cpu_use("no_such", KernelClass::kSoftmax).vectors,
            cpu_use("_softmax", KernelClass::kUncosted).vectors);
}

TEST(CostClasses, HaveRowsInOrderAndNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const CostClassRow& row : cost_classes()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
    EXPECT_EQ(&row_of(row.cost_class), &row);
  }
  EXPECT_EQ(row_of(CostClass::kRnn).limit, CostLimit::kTensor);
  EXPECT_TRUE(row_of(CostClass::kPooling).saturates);
  EXPECT_FALSE(row_of(CostClass::kCopy).saturates);
}

}  // namespace
}  // namespace stoker
