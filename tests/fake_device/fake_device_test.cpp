// The fake device itself: what it forbids is noticed, and what it computes is what the CPU computes.
#include "fake_device.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

namespace tsdp::test::fake {
namespace {

at::Tensor four(double value) { return at::full({4}, value, device()); }

at::Tensor pinned_four() { return at::zeros({4}, dp::host_memory_for(device())); }

TEST(FakeDevice, AHostThatReadsItsMemoryDies) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto t = four(1.0);
  EXPECT_EXIT(
      {
        volatile float read = t.const_data_ptr<float>()[0];
        static_cast<void>(read);
      },
      testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(t.data_ptr<float>()[3] = 1.0F, testing::KilledBySignal(SIGSEGV), "");
}

TEST(FakeDevice, RefusesTensorsOfTheHost) {
  const auto t = four(1.0);
  EXPECT_ANY_THROW(t.add(at::ones({4})));
  EXPECT_ANY_THROW(t.add_(at::ones({4})));
  EXPECT_ANY_THROW(at::mm(t.view({2, 2}), at::ones({2, 2})));
  EXPECT_ANY_THROW(at::cat({t, at::ones({4})}));
  EXPECT_ANY_THROW(t.index_select(0, at::tensor({0, 1}, at::kLong)));
  EXPECT_ANY_THROW(at::ones({4}).add_(t));
  EXPECT_TRUE(t.add(at::scalar_tensor(2.0)).eq(3.0).all().item<bool>());
}

TEST(FakeDevice, CountsAndForbidsWaits) {
  const auto t = four(1.0);
  reset();
  const auto sum = t.sum();
  EXPECT_EQ(counts().launches, 1);
  EXPECT_EQ(counts().allocations, 1);
  EXPECT_EQ(counts().waits, 0);
  EXPECT_EQ(sum.item<float>(), 4.0F);
  EXPECT_EQ(counts().waits, 1);
  EXPECT_TRUE(at::equal(t, t.clone()));
  EXPECT_EQ(counts().waits, 2);
  EXPECT_EQ(at::nonzero(t).numel(), 4);
  EXPECT_EQ(counts().waits, 3);
  EXPECT_TRUE(at::equal(t.cpu(), at::ones({4})));
  EXPECT_EQ(counts().to_host, 2);
  static_cast<void>(at::ones({4}).to(device()));
  EXPECT_EQ(counts().to_device, 1);
  EXPECT_EQ(counts().pageable, 2);
  EXPECT_EQ(counts().waits, 5);
  const Forbidden waits({});
  EXPECT_ANY_THROW(static_cast<void>(sum.item<float>()));
  EXPECT_ANY_THROW(static_cast<void>(at::equal(t, t)));
  EXPECT_ANY_THROW(t.cpu());
  EXPECT_ANY_THROW(at::ones({4}).to(device()));
  EXPECT_ANY_THROW(pinned_four().to(device()));  // blocking
  EXPECT_NO_THROW(pinned_four().to(device(), /*non_blocking=*/true));
  EXPECT_NO_THROW(four(2.0));
  const Forbidden memory({.waits = false, .allocations = true});
  EXPECT_ANY_THROW(four(2.0));
  EXPECT_NO_THROW(t.add_(1.0));
}

TEST(FakeDevice, MemoryHoldsNoNumbersBeforeItIsWrittenTo) {
  EXPECT_TRUE(at::empty({1000}, device()).isnan().all().item<bool>());
  auto given_back = four(1.0);
  const auto* address = given_back.const_data_ptr();
  given_back.reset();
  const auto next = at::empty({4}, device());
  ASSERT_EQ(next.const_data_ptr(), address);
  EXPECT_TRUE(next.isnan().all().item<bool>());
}

TEST(FakeDevice, NoticesAHostThatWritesWhereACopyReads) {
  const auto t = four(0.0);
  const auto from = pinned_four();
  t.copy_(from, /*non_blocking=*/true);
  from.fill_(1.0);
  EXPECT_ANY_THROW(expect_copies_undisturbed());
  t.copy_(from, /*non_blocking=*/true);
  static_cast<void>(t.sum().item<float>());
  from.fill_(2.0);  // the host has waited
  EXPECT_NO_THROW(expect_copies_undisturbed());
}

class OnAStream : public testing::Test {
 protected:
  void SetUp() override { dp::settle_device(device()); }
};

TEST_F(OnAStream, ARecordIsNotDoneUntilItIsReplayed) {
  const auto x = four(1.0);
  const auto y = four(0.0);
  double frozen = 3.0;
  const auto graph = dp::recorded(device(), [&] { y.add_(x * frozen); });
  EXPECT_EQ(y.sum().item<float>(), 0.0F);
  frozen = 100.0;  // a number of the host's stays what it was
  x.fill_(2.0);    // what the device holds does not
  reset();
  {
    const Forbidden all({.waits = true, .allocations = true});
    graph->replay();
  }
  EXPECT_EQ(counts().launches, 1);
  EXPECT_EQ(counts().kernels, 2);
  EXPECT_EQ(y.sum().item<float>(), 24.0F);
}

TEST_F(OnAStream, WhatARecordReadsMustStay) {
  const auto y = four(0.0);
  auto x = four(1.0);
  const auto graph = dp::recorded(device(), [&] { y.add_(x); });
  x.reset();
  graph->replay();
  EXPECT_TRUE(y.isnan().all().item<bool>());
}

TEST_F(OnAStream, WhatARecordAllocatesIsItsOwn) {
  const auto y = four(0.0);
  const auto graph = dp::recorded(device(), [&] { y.add_(four(1.0).mul(2.0)); });
  std::vector<at::Tensor> others;
  for (int i = 0; i < 8; ++i) others.push_back(four(7.0));
  graph->replay();
  EXPECT_EQ(y.sum().item<float>(), 8.0F);
  for (const auto& t : others) EXPECT_EQ(t.sum().item<float>(), 28.0F);
}

TEST_F(OnAStream, NothingThatWaitsCanBeRecorded) {
  const auto x = four(1.0);
  EXPECT_ANY_THROW(dp::recorded(device(), [&] { static_cast<void>(x.sum().item<float>()); }));
  EXPECT_ANY_THROW(dp::recorded(device(), [&] { static_cast<void>(at::ones({4}).to(device())); }));
  EXPECT_NO_THROW(dp::recorded(device(), [&] { x.add_(1.0); }));
}

TEST(FakeDeviceAlone, TheDefaultStreamCannotRecord) {
  std::thread([] { EXPECT_ANY_THROW(dp::recorded(device(), [] {})); }).join();
}

TEST_F(OnAStream, RefusesWhatVariesFromRunToRun) { EXPECT_ANY_THROW(four(1.0).histc(2)); }

}  // namespace
}  // namespace tsdp::test::fake
