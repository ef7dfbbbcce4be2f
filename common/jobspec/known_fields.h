// Names that users know from Transformers, PEFT and TRL and that are not fields of traind.v1 with
// the same meaning: other spellings, and what is not supported yet.
#pragma once

#include "absl/strings/string_view.h"
#include "common/jobspec/json_document.h"

namespace traind::jobspec {

// Another spelling of a field.
struct Alias {
  absl::string_view message;     // Where it is written, such as `TrainingArguments`.
  absl::string_view name;        // As written.
  absl::string_view target;      // The field that is meant, as a path from the job.
  bool (*applies)(const Json&);  // Whether this value means the target; null means any value.
  Json (*convert)(const Json&);  // Its value there; null keeps it.
};

// The alias of `name` in `message` that applies to `value`, or null.
const Alias* FindAlias(absl::string_view message, absl::string_view name, const Json& value);

// The field that is usually meant by `name`, which is no field of `message`; empty if none is
// known. Only for suggestions.
absl::string_view FindSynonym(absl::string_view message, absl::string_view name);

// A field of those libraries that has no counterpart here.
struct UnsupportedField {
  absl::string_view message;
  absl::string_view name;
  absl::string_view harmless;  // JSON list of values that change nothing; `*` stands for all.
  absl::string_view reason;    // Why any other value is refused, and what to do.
};

const UnsupportedField* FindUnsupported(absl::string_view message, absl::string_view name);

// Whether `value` changes nothing and may be skipped. null always is.
bool IsHarmless(const UnsupportedField& field, const Json& value);

}  // namespace traind::jobspec
