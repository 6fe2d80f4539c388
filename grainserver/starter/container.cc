#include "grainserver/starter/container.h"

#include <climits>

#include <unistd.h>

#include "base/hex.h"
#include "base/require.h"

namespace dcs::starter {

std::string container_runner() {
    char path[PATH_MAX];
    const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path - 1);
    const std::string self(path, n > 0 ? static_cast<std::size_t>(n) : 0);
    return self.substr(0, self.rfind('/') + 1) + "dcs_container";
}

// The words are read by grainserver/container/main.cc.
std::vector<std::string> container_command(const files::LaunchRecord &launch, const std::string &grains,
                                           const ImagePlace &place, const std::string &gpus) {
    const files::FileRecord *image = files::image_of(launch.files);
    DCS_REQUIRE(image != nullptr && !launch.argv.empty(),
                "only a grain with an image and a program has such a command");
    bool brought = false;
    for (const files::FileRecord &file : launch.files) brought = brought || file.role == wire::FileRole::program;
    std::vector<std::string> words = {container_runner(),
                                      "run",
                                      place.archive,
                                      place.store,
                                      hex_of(image->digest),
                                      grains,
                                      std::to_string(launch.rungs),
                                      gpus,
                                      brought ? launch.program : "",
                                      launch.directory,
                                      launch.program};
    words.insert(words.end(), launch.argv.begin(), launch.argv.end());
    return words;
}

}  // namespace dcs::starter
