#include "worker/trainer/file_checkpoint_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "common/status/errors.h"
#include "tests/support/temp_dir.h"
#include "worker/lora/adapter_layout.h"

namespace traind {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

ModelConfig TinyConfig() {
  ModelConfig config;
  config.model_type = "llama";
  config.vocab_size = 16;
  config.hidden_size = 8;
  config.intermediate_size = 16;
  config.num_hidden_layers = 1;
  config.num_attention_heads = config.num_key_value_heads = 2;
  config.head_dim = 4;
  return config;
}

class FileCheckpointStoreTest : public testing::Test {
 protected:
  FileCheckpointStore Store(int64_t keep_last = 0, const std::string& run_id = "run") {
    return FileCheckpointStore({dir_.path(), run_id, {"/m", TinyConfig()}, keep_last}, plan_,
                               clock_);
  }

  static Adapter NewAdapter() {
    LoraOptions options;
    options.r = 2;
    return Adapter(BuildAdapterLayout(TinyConfig(), options).value());
  }

  static RunState AtStep(int64_t step) {
    RunState state;
    state.step = step;
    state.updates = step - 1;
    state.pending.loss_sum = 0.1;
    return state;
  }

  // An adapter whose numbers all tell the step and the buffer.
  static Adapter AdapterAt(int64_t step) {
    Adapter adapter = NewAdapter();
    const auto number = static_cast<float>(step);
    std::fill(adapter.parameters().begin(), adapter.parameters().end(), number);
    std::fill(adapter.exp_avg().begin(), adapter.exp_avg().end(), number + 0.25f);
    std::fill(adapter.exp_avg_sq().begin(), adapter.exp_avg_sq().end(), number + 0.5f);
    return adapter;
  }

  void Save(FileCheckpointStore store, int64_t step) {
    Adapter adapter = AdapterAt(step);
    const auto saved = store.Save(adapter, AtStep(step));
    ASSERT_TRUE(saved.ok()) << saved.status();
    EXPECT_GT(*saved, 0);
  }

  TempDir dir_;
  SystemClock clock_;
  BatchPlan plan_ = BatchPlan::Create({.rows = 80, .num_train_epochs = 1}).value();
};

TEST_F(FileCheckpointStoreTest, AnEmptyFolderIsAFreshStart) {
  Adapter adapter = NewAdapter();
  const auto restored = Store().RestoreNewest(adapter);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_FALSE(restored->has_value());
}

TEST_F(FileCheckpointStoreTest, RestoresEveryBufferAndTheState) {
  Save(Store(), 2);
  Save(Store(), 10);
  Adapter adapter = NewAdapter();
  const auto restored = Store().RestoreNewest(adapter);
  ASSERT_TRUE(restored.ok() && restored->has_value()) << restored.status();
  EXPECT_EQ((*restored)->state.step, 10);
  EXPECT_EQ((*restored)->state.updates, 9);
  EXPECT_EQ((*restored)->state.pending.loss_sum, 0.1);
  EXPECT_THAT(adapter.parameters(), testing::Each(10.0f));
  EXPECT_THAT(adapter.exp_avg(), testing::Each(10.25f));
  EXPECT_THAT(adapter.exp_avg_sq(), testing::Each(10.5f));
}

TEST_F(FileCheckpointStoreTest, ADamagedCheckpointGivesWayToTheOneBefore) {
  Save(Store(), 2);
  Save(Store(), 3);
  std::filesystem::resize_file(dir_.File("checkpoint-3/adapter_model.safetensors"), 0);
  Adapter adapter = NewAdapter();
  const auto restored = Store().RestoreNewest(adapter);
  ASSERT_TRUE(restored.ok() && restored->has_value()) << restored.status();
  EXPECT_EQ((*restored)->state.step, 2);
  EXPECT_THAT((*restored)->skipped, SizeIs(1));
}

TEST_F(FileCheckpointStoreTest, KeepsTheNewest) {
  for (int64_t step = 1; step <= 5; ++step) Save(Store(/*keep_last=*/2), step);
  EXPECT_THAT(ListDirectory(dir_.path()).value(),
              testing::UnorderedElementsAre("checkpoint-4", "checkpoint-5"));
}

TEST_F(FileCheckpointStoreTest, AnotherRunsCheckpointIsNotResumedFrom) {
  Save(Store(), 2);
  Adapter adapter = NewAdapter();
  const auto restored = Store(0, "other").RestoreNewest(adapter);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_FALSE(restored->has_value());
}

TEST_F(FileCheckpointStoreTest, AStepBeyondThePlanIsRefused) {
  Save(Store(), 11);
  Adapter adapter = NewAdapter();
  EXPECT_EQ(ReasonOf(Store().RestoreNewest(adapter).status()), Reason::kCheckpointCorrupt);
}

}  // namespace
}  // namespace traind
