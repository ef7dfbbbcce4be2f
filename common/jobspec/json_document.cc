#include "common/jobspec/json_document.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::jobspec {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxExcerpt = 60;

// Bytes that are not printable ASCII as \xNN: the text of an error must itself be valid UTF-8.
std::string Printable(absl::string_view text) {
  std::string result;
  for (const char byte : text) {
    if (absl::ascii_isprint(static_cast<unsigned char>(byte))) {
      result.push_back(byte);
    } else {
      absl::StrAppend(&result, "\\x", absl::Hex(static_cast<unsigned char>(byte), absl::kZeroPad2));
    }
  }
  return result;
}

// The tail of the library's message, which tells what it met and what it expected.
std::string Cause(absl::string_view what) {
  const size_t dash = what.find(" - ");
  if (dash != absl::string_view::npos) return Printable(what.substr(dash + 3));
  const size_t bracket = what.find("] ");
  return Printable(bracket == absl::string_view::npos ? what : what.substr(bracket + 2));
}

// What the writer probably meant, from the text at the error.
absl::string_view Hint(absl::string_view text, size_t offset) {
  const absl::string_view here = text.substr(offset - std::min<size_t>(offset, 8), 16);
  const absl::string_view before = absl::StripTrailingAsciiWhitespace(text.substr(0, offset));
  const char met = offset < text.size() ? text[offset] : '\0';
  if (absl::StrContains(here, "NaN") || absl::StrContains(here, "nan") ||
      absl::StrContains(here, "Inf")) {
    return "; JSON has no NaN or Infinity: write a number";
  }
  if ((met == '}' || met == ']') && absl::EndsWith(before, ",")) {
    return "; remove the comma before it";
  }
  if (met == '#' || met == '/') return "; JSON has no comments";
  if (met == '\'') return "; strings stand in double quotes";
  if (absl::StrContains(here, "True") || absl::StrContains(here, "False") ||
      absl::StrContains(here, "None")) {
    return "; JSON writes true, false and null";
  }
  return "";
}

// Builds the tree from the library's events, to see each key before it can overwrite another.
class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(absl::string_view text, const std::string& file_name)
      : text_(text), file_name_(file_name) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
  bool string(string_t& value) override { return Add(value); }
  bool binary(binary_t&) override { return false; }  // JSON text has none.
  bool start_object(size_t) override { return Open(Json::object()); }
  bool end_object() override { return CloseContainer(); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_array() override { return CloseContainer(); }

  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) {
      const std::string path = Path(Printable(name));
      return Fail(Error(absl::StatusCode::kInvalidArgument, Reason::kInvalidField,
                        absl::StrCat(file_name_, ": ", path, " is given twice; keep one of them"),
                        {{"file", file_name_}, {"field", path}}));
    }
    names_.back() = name;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The position counts the bytes that were read; the last of them is the wrong one.
    return FailAt(std::min(position, text_.size() + 1) - std::min<size_t>(position, 1),
                  Cause(error.what()));
  }

  const absl::Status& status() const { return status_; }
  Json TakeRoot() { return std::move(root_); }

 private:
  bool Fail(absl::Status status) {
    status_ = std::move(status);
    return false;
  }

  bool FailAt(size_t offset, const std::string& cause) {
    const absl::string_view before = text_.substr(0, offset);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
    const size_t column = offset - start + 1;
    return Fail(Error(
        absl::StatusCode::kInvalidArgument, Reason::kInvalidField,
        absl::StrCat(file_name_, ":", line, ":", column, ": not valid JSON: ", cause,
                     Hint(text_, offset)),
        {{"file", file_name_}, {"line", absl::StrCat(line)}, {"column", absl::StrCat(column)}}));
  }

  // The path of `name` in the innermost object.
  std::string Path(absl::string_view name) const {
    std::string path;
    for (size_t i = 0; i + 1 < open_.size(); ++i) {
      if (open_[i]->is_array()) {
        absl::StrAppend(&path, "[", open_[i]->size() - 1, "]");
      } else {
        absl::StrAppend(&path, path.empty() ? "" : ".", Printable(names_[i]));
      }
    }
    return absl::StrCat(path, path.empty() ? "" : ".", name);
  }

  Json* Place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    return &((*open_.back())[names_.back()] = std::move(value));
  }

  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }

  bool Open(Json container) {
    if (open_.size() == kMaxDepth) {
      return Fail(Error(absl::StatusCode::kInvalidArgument, Reason::kInvalidField,
                        absl::StrCat(file_name_, ": nested deeper than ", kMaxDepth, " levels"),
                        {{"file", file_name_}}));
    }
    open_.push_back(Place(std::move(container)));
    names_.emplace_back();
    keys_.emplace_back();
    return true;
  }

  bool CloseContainer() {
    open_.pop_back();
    names_.pop_back();
    keys_.pop_back();
    return true;
  }

  absl::string_view text_;
  const std::string& file_name_;
  Json root_;
  absl::Status status_;
  // One entry for each open container. A container only grows while it is the innermost one, so the
  // pointers to the outer ones stay valid.
  std::vector<Json*> open_;
  std::vector<std::string> names_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, const std::string& file_name) {
  TreeBuilder builder(text, file_name);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return builder.status();
  return builder.TakeRoot();
}

std::string Excerpt(const Json& value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kMaxExcerpt) text = absl::StrCat(text.substr(0, kMaxExcerpt), "…");
  return text;
}

}  // namespace traind::jobspec
