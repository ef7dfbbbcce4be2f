#include "worker/model/weight_source.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/modelspec/model_error.h"
#include "worker/model/gguf_weights.h"
#include "worker/model/safetensors_weights.h"

namespace traind {

absl::StatusOr<std::unique_ptr<WeightSource>> OpenWeights(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return ModelNotFound(path, absl::StrCat(std::strerror(errno),
                                            "; the base model must be a "
                                            "Hugging Face folder or a GGUF file on this host"));
  }
  if (S_ISDIR(info.st_mode)) return OpenSafetensorsWeights(path);
  if (absl::EndsWith(path, ".safetensors")) {
    return ModelInvalid(path, "name the folder that holds it and its config.json");
  }
  return OpenGgufWeights(path);
}

}  // namespace traind
