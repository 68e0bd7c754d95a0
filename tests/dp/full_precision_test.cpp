#include <gtest/gtest.h>

#include <ATen/Context.h>
#include <stdlib.h>

#include "dp/private_step.h"
#include "tsdp/base/error.h"

namespace tsdp::dp {
namespace {

TEST(FullPrecision, IsThereUnlessItWasSwitchedOff) {
  EXPECT_NO_THROW(require_full_precision(at::Device(at::kCPU)));
  for (const auto* variable :
       {"NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION",
        "CUBLAS_EMULATE_DOUBLE_PRECISION", "ONEDNN_DEFAULT_FPMATH_MODE"}) {
    ASSERT_EQ(::setenv(variable, "1", 1), 0);
    try {
      require_full_precision(at::Device(at::kCPU));
      ADD_FAILURE() << variable;
    } catch (const PrivacyError& error) {
      EXPECT_NE(std::string(error.what()).find(variable), std::string::npos) << error.what();
    }
    ASSERT_EQ(::setenv(variable, variable[0] == 'O' ? "STRICT" : "0", 1), 0);
    EXPECT_NO_THROW(require_full_precision(at::Device(at::kCPU)));
    ::unsetenv(variable);
  }
  auto& context = at::globalContext();
  for (const auto* less : {"high", "medium"}) {
    context.setFloat32MatmulPrecision(less);
    EXPECT_THROW(require_full_precision(at::Device(at::kCPU)), PrivacyError);
  }
  context.setFloat32MatmulPrecision("highest");
  EXPECT_NO_THROW(require_full_precision(at::Device(at::kCPU)));
}

}  // namespace
}  // namespace tsdp::dp
