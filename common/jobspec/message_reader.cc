#include "common/jobspec/message_reader.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/jobspec/known_fields.h"
#include "common/jobspec/nearest_name.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/struct.pb.h"

namespace traind::jobspec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// What only the daemon sets: a job that `trainctl job get` printed can be submitted again.
constexpr absl::string_view kOutputOnly[] = {
    "uid",          "state",         "error",   "create_time", "update_time",    "revision",
    "end_time",     "owner",         "attempt", "progress",    "pending_reason", "plan",
    "adapter_path", "last_sequence", "etag"};

bool IsOutputOnly(absl::string_view name) {
  for (const absl::string_view known : kOutputOnly) {
    if (name == known) return true;
  }
  return false;
}

std::vector<std::string> FieldNames(const Descriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) {
    const std::string& name = type->field(i)->name();
    if (type != v1::Job::descriptor() || !IsOutputOnly(name)) names.push_back(name);
  }
  return names;
}

// Paths of the messages in the file that have a field called `name`, such as `training`.
void FindOwners(const Descriptor* type, const std::string& path, absl::string_view name,
                std::vector<std::string>* owners) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->name() == name) {
      owners->push_back(absl::StrCat(path, path.empty() ? "" : ".", name));
    }
    const bool ours = field->type() == FieldDescriptor::TYPE_MESSAGE && !field->is_repeated() &&
                      field->message_type()->file()->package() == "traind.v1";
    if (!ours || (path.empty() && IsOutputOnly(field->name()))) continue;
    const std::string child = field->name() == "spec" ? "" : field->name();
    FindOwners(field->message_type(), absl::StrCat(path, path.empty() ? "" : ".", child), name,
               owners);
  }
}

std::string ValueNames(const EnumDescriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() != 0) names.push_back(type->value(i)->name());
  }
  return absl::StrJoin(names, ", ");
}

// Any JSON; `target_modules` is a name, a list of names or a regular expression.
void FillValue(const Json& json, google::protobuf::Value* value) {
  if (json.is_boolean()) {
    value->set_bool_value(json.get<bool>());
  } else if (json.is_number()) {
    value->set_number_value(json.get<double>());
  } else if (json.is_string()) {
    value->set_string_value(json.get<std::string>());
  } else if (json.is_array()) {
    value->mutable_list_value();
    for (const Json& element : json) FillValue(element, value->mutable_list_value()->add_values());
  } else if (json.is_object()) {
    auto* fields = value->mutable_struct_value()->mutable_fields();
    for (const auto& [name, member] : json.items()) FillValue(member, &(*fields)[name]);
  } else {
    value->set_null_value(google::protobuf::NULL_VALUE);
  }
}

// A number, or a string that holds one, as the JSON of protocol buffers allows.
std::optional<double> AsNumber(const Json& value) {
  double number;
  if (value.is_number()) {
    number = value.get<double>();
  } else if (!value.is_string() || !absl::SimpleAtod(value.get<std::string>(), &number)) {
    return std::nullopt;
  }
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

// Exact where a double is not.
std::optional<int64_t> AsInteger(const Json& value) {
  int64_t number;
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_string()) {
    if (!absl::SimpleAtoi(value.get<std::string>(), &number)) return std::nullopt;
    return number;
  }
  const std::optional<double> real = AsNumber(value);
  if (!real || *real != std::floor(*real) || std::abs(*real) > 9007199254740992.0) {
    return std::nullopt;  // 2^53: beyond it a double may stand for several integers.
  }
  return static_cast<int64_t>(*real);
}

}  // namespace

FieldPlace FieldPlace::Child(const std::string& name) const {
  return {absl::StrCat(written, written.empty() ? "" : ".", name),
          absl::StrCat(canonical, canonical.empty() ? "" : ".", name)};
}

FieldPlace FieldPlace::Element(size_t index) const {
  return {absl::StrCat(written, "[", index, "]"), absl::StrCat(canonical, "[", index, "]")};
}

MessageReader::MessageReader(v1::Job* job, std::string folder)
    : job_(job), folder_(std::move(folder)) {}

void MessageReader::Problem(const FieldPlace& place, std::string description) {
  problems_.push_back({place.written, std::move(description)});
}

void MessageReader::Expected(const FieldPlace& place, absl::string_view what, const Json& got) {
  Problem(place, absl::StrCat("must be ", what, "; got ", Excerpt(got)));
}

void MessageReader::ReadJob(const Json& root) {
  const bool short_form = !root.contains("spec");
  const FieldPlace top;
  const FieldPlace spec_place{"", "spec"};
  if (short_form) written_as_["spec"] = "";
  for (const auto& [name, value] : root.items()) {
    const bool of_spec = v1::TrainingSpec::descriptor()->FindFieldByName(name) != nullptr;
    const bool of_job = v1::Job::descriptor()->FindFieldByName(name) != nullptr;
    if (!of_spec || of_job) {
      ReadMember(name, value, top, job_);
    } else if (short_form) {
      ReadMember(name, value, spec_place, job_->mutable_spec());
    } else {
      Problem(top.Child(name), "stands beside `spec`; move it into `spec`");
    }
  }
}

void MessageReader::ReadMembers(const Json& object, const FieldPlace& place, Message* message) {
  for (const auto& [name, value] : object.items()) ReadMember(name, value, place, message);
}

void MessageReader::ReadMember(const std::string& name, const Json& value, const FieldPlace& parent,
                               Message* message) {
  const Descriptor* type = message->GetDescriptor();
  const FieldPlace place = parent.Child(name);
  if (message == job_ && IsOutputOnly(name)) return;
  if (const Alias* alias = FindAlias(type->name(), name, value); alias != nullptr) {
    ReadAliased(std::string(alias->target), alias->convert ? alias->convert(value) : value,
                place.written);
    return;
  }
  const FieldDescriptor* field = type->FindFieldByName(name);
  if (field == nullptr) {
    ReadUnknown(name, value, parent, type);
  } else if (!value.is_null()) {  // null leaves the default, as in the JSON of protocol buffers.
    ReadField(value, place, field, message);
  }
}

void MessageReader::ReadAliased(const std::string& target, const Json& value,
                                const std::string& written) {
  if (value.is_null()) return;
  const std::vector<std::string> names = absl::StrSplit(target, '.');
  Message* message = job_;
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    const FieldDescriptor* step = message->GetDescriptor()->FindFieldByName(names[i]);
    message = message->GetReflection()->MutableMessage(message, step);
  }
  ReadField(value, {written, target}, message->GetDescriptor()->FindFieldByName(names.back()),
            message);
}

void MessageReader::ReadUnknown(const std::string& name, const Json& value,
                                const FieldPlace& parent, const Descriptor* type) {
  const UnsupportedField* known = FindUnsupported(type->name(), name);
  if (known == nullptr && type == v1::TrainingSpec::descriptor()) {
    known = FindUnsupported("Job", name);
  }
  // Names of users' own come without control characters into the message.
  const std::string quoted = Excerpt(Json(name));
  FieldPlace place = parent.Child(quoted.substr(1, quoted.size() - 2));
  if (known != nullptr) {
    if (!IsHarmless(*known, value)) {
      Problem(place, absl::StrCat("cannot be ", Excerpt(value), ": ", known->reason));
    }
    return;
  }
  std::vector<std::string> names = FieldNames(type);
  if (type == v1::Job::descriptor()) {
    for (std::string& inner : FieldNames(v1::TrainingSpec::descriptor())) names.push_back(inner);
  }
  std::vector<std::string> owners;
  FindOwners(v1::Job::descriptor(), "", name, &owners);
  const absl::string_view synonym = FindSynonym(type->name(), name);
  const std::string nearest = synonym.empty() ? NearestName(name, names) : std::string(synonym);
  if (!nearest.empty()) {
    Problem(place, absl::StrCat("is not a known field; did you mean `", nearest, "`?"));
  } else if (!owners.empty()) {
    Problem(place,
            absl::StrCat("is not a field of this object; did you mean `", owners.front(), "`?"));
  } else {
    Problem(place, absl::StrCat("is not a known field; known here: ", absl::StrJoin(names, ", ")));
  }
}

void MessageReader::ReadField(const Json& value, const FieldPlace& place, const Field* field,
                              Message* message) {
  const auto [seen, first] = written_as_.emplace(place.canonical, place.written);
  if (!first) {
    Problem(place, absl::StrCat("says the same as `", seen->second, "`; keep one of them"));
  } else if (field->is_map()) {
    ReadMap(value, place, field, message);
  } else if (field->is_repeated()) {
    ReadRepeated(value, place, field, message);
  } else if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
    ReadSubmessage(value, place, message->GetReflection()->MutableMessage(message, field));
  } else {
    ReadScalar(value, place, field, message);
  }
}

void MessageReader::ReadRepeated(const Json& value, const FieldPlace& place, const Field* field,
                                 Message* message) {
  if (!value.is_array()) return Expected(place, "a list", value);
  for (size_t i = 0; i < value.size(); ++i) {
    // Every repeated field that a user can set holds messages.
    ReadSubmessage(value[i], place.Element(i),
                   message->GetReflection()->AddMessage(message, field));
  }
}

void MessageReader::ReadMap(const Json& value, const FieldPlace& place, const Field* field,
                            Message* message) {
  if (!value.is_object()) return Expected(place, "an object of names and strings", value);
  const Descriptor* entry_type = field->message_type();
  for (const auto& [key, element] : value.items()) {
    Message* entry = message->GetReflection()->AddMessage(message, field);
    ReadString(Json(key), place, entry_type->map_key(), entry);
    ReadString(element, place.Child(key), entry_type->map_value(), entry);
  }
}

void MessageReader::ReadSubmessage(const Json& value, const FieldPlace& place, Message* message) {
  const Descriptor* type = message->GetDescriptor();
  if (type == google::protobuf::Duration::descriptor()) {
    ReadDuration(value, place, message);
  } else if (type == google::protobuf::Value::descriptor()) {
    FillValue(value, google::protobuf::DynamicCastToGenerated<google::protobuf::Value>(message));
  } else if (value.is_object()) {
    ReadMembers(value, place, message);
  } else if (const FieldDescriptor* path = type->FindFieldByName("path"); path != nullptr) {
    Expected(place, "an object such as {\"path\": \"…\"}", value);
  } else {
    Expected(place, "an object", value);
  }
}

void MessageReader::ReadScalar(const Json& value, const FieldPlace& place, const Field* field,
                               Message* message) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return ReadInteger(value, place, field, message);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ReadDouble(value, place, field, message);
    case FieldDescriptor::CPPTYPE_ENUM:
      return ReadEnum(value, place, field, message);
    case FieldDescriptor::CPPTYPE_STRING:
      return ReadString(value, place, field, message);
    case FieldDescriptor::CPPTYPE_BOOL:
      if (!value.is_boolean()) return Expected(place, "true or false", value);
      return message->GetReflection()->SetBool(message, field, value.get<bool>());
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Problem(place, "cannot be set from a file");  // traind.v1 has no such field.
  }
}

void MessageReader::ReadInteger(const Json& value, const FieldPlace& place, const Field* field,
                                Message* message) {
  const bool narrow = field->cpp_type() == FieldDescriptor::CPPTYPE_INT32;
  const std::optional<int64_t> number = AsInteger(value);
  if (!number) return Expected(place, "a whole number", value);
  if (!narrow) return message->GetReflection()->SetInt64(message, field, *number);
  if (*number < std::numeric_limits<int32_t>::min() ||
      *number > std::numeric_limits<int32_t>::max()) {
    return Expected(place, "between -2147483648 and 2147483647", value);
  }
  message->GetReflection()->SetInt32(message, field, static_cast<int32_t>(*number));
}

void MessageReader::ReadDouble(const Json& value, const FieldPlace& place, const Field* field,
                               Message* message) {
  const std::optional<double> number = AsNumber(value);
  if (!number) return Expected(place, "a number", value);
  message->GetReflection()->SetDouble(message, field, *number);
}

void MessageReader::ReadEnum(const Json& value, const FieldPlace& place, const Field* field,
                             Message* message) {
  const google::protobuf::EnumValueDescriptor* found =
      value.is_string() ? field->enum_type()->FindValueByName(value.get<std::string>()) : nullptr;
  if (found == nullptr || found->number() == 0) {
    return Expected(place, absl::StrCat("one of ", ValueNames(field->enum_type())), value);
  }
  message->GetReflection()->SetEnum(message, field, found);
}

void MessageReader::ReadString(const Json& value, const FieldPlace& place, const Field* field,
                               Message* message) {
  if (!value.is_string()) return Expected(place, "a string", value);
  std::string text = value.get<std::string>();
  if (text.find('\0') != std::string::npos) {
    return Problem(place, "must not contain a NUL character");
  }
  if (field->name() == "path" && !text.empty()) {
    text = (std::filesystem::path(folder_) / text).lexically_normal().string();
  }
  message->GetReflection()->SetString(message, field, text);
}

void MessageReader::ReadDuration(const Json& value, const FieldPlace& place, Message* message) {
  absl::Duration duration;
  constexpr absl::Duration kLongest = absl::Hours(24 * 366 * 100);
  if (!value.is_string() || !absl::ParseDuration(value.get<std::string>(), &duration) ||
      duration < -kLongest || duration > kLongest) {
    return Expected(place, "a duration such as \"7200s\" or \"2h30m\"", value);
  }
  auto* result = google::protobuf::DynamicCastToGenerated<google::protobuf::Duration>(message);
  result->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  result->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
}

}  // namespace traind::jobspec
