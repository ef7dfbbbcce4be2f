#include "common/modelspec/json_object.h"

#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/modelspec/model_error.h"

namespace traind {
namespace {

using Event = nlohmann::json::parse_event_t;

// Watches a parser for keys that an object already has.
class DuplicateKeyFinder {
 public:
  bool operator()(int, Event event, nlohmann::json& value) {
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key) {
      const std::string key = value.get<std::string>();
      if (!keys_.back().insert(key).second && duplicate_.empty()) duplicate_ = key;
    }
    return true;
  }

  const std::string& duplicate() const { return duplicate_; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string duplicate_;
};

}  // namespace

absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text, const std::string& path) {
  DuplicateKeyFinder finder;
  nlohmann::json value;
  try {
    value = nlohmann::json::parse(text.begin(), text.end(), std::ref(finder));
  } catch (const nlohmann::json::exception& error) {
    // The library's message begins with a tag in brackets that tells a user nothing.
    absl::string_view message = error.what();
    const size_t tag_end = message.find("] ");
    if (tag_end != absl::string_view::npos) message.remove_prefix(tag_end + 2);
    return ModelInvalid(path, absl::StrCat("not valid JSON: ", message));
  }
  if (!finder.duplicate().empty()) {
    return ModelInvalid(path, absl::StrCat("the key \"", finder.duplicate(), "\" occurs twice"));
  }
  if (!value.is_object()) return ModelInvalid(path, "not a JSON object");
  return value;
}

std::string JsonText(const nlohmann::json& value) {
  // Not dump() for all: it recurses, and a file may nest as deeply as it likes.
  return value.is_structured() ? absl::StrCat("an ", value.type_name()) : value.dump();
}

}  // namespace traind
