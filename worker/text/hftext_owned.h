// What the Rust library hands out, as values that free themselves. Only for .cc files of this
// folder.
#pragma once

#include <string>
#include <vector>

#include "worker/text/hftext/hftext.h"
#include "worker/text/tokenizer.h"

namespace traind {

// Owns one text; pass `out()` to a call.
class HftextText {
 public:
  HftextText() = default;
  HftextText(const HftextText&) = delete;
  HftextText& operator=(const HftextText&) = delete;
  ~HftextText() { hftext_text_free(&text_); }

  hftext_text* out() { return &text_; }
  std::string str() const {
    return text_.data == nullptr ? std::string() : std::string(text_.data, text_.size);
  }

 private:
  hftext_text text_{};
};

// Owns ids.
class HftextIds {
 public:
  HftextIds() = default;
  HftextIds(const HftextIds&) = delete;
  HftextIds& operator=(const HftextIds&) = delete;
  ~HftextIds() { hftext_ids_free(&ids_); }

  hftext_ids* out() { return &ids_; }
  std::vector<int32_t> ids() const { return {ids_.data, ids_.data + ids_.size}; }

 private:
  hftext_ids ids_{};
};

// Owns byte ranges.
class HftextRanges {
 public:
  HftextRanges() = default;
  HftextRanges(const HftextRanges&) = delete;
  HftextRanges& operator=(const HftextRanges&) = delete;
  ~HftextRanges() { hftext_ranges_free(&ranges_); }

  hftext_ranges* out() { return &ranges_; }
  std::vector<ByteRange> ranges() const {
    std::vector<ByteRange> result;
    result.reserve(ranges_.size);
    for (size_t i = 0; i < ranges_.size; ++i) {
      result.push_back({ranges_.data[i][0], ranges_.data[i][1]});
    }
    return result;
  }

 private:
  hftext_ranges ranges_{};
};

}  // namespace traind
