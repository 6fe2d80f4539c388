#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "scheduler/state/input.h"

namespace dcs::turn {

inline core::Payload payload_of(std::string bytes) {
    return core::Payload{std::make_shared<const std::string>(std::move(bytes))};
}

// Digest of the program that the spec names, which may be relative to the user's home; not 0. One that the
// library has is another program than one that hosts have: it may be missing there. So is one in an image.
inline std::uint32_t program_of(const std::string &user, const wire::GrainSpec &spec) {
    if (spec.argv.empty()) return 0;
    std::uint32_t sum = crc32c(spec.argv[0], crc32c(user));
    for (const wire::GrainFile &file : spec.files)
        if (file.role == wire::FileRole::program || file.role == wire::FileRole::image) sum = crc32c(file.digest, sum);
    return std::max<std::uint32_t>(1, sum);
}

// What the State keeps of them.
inline core::GrainFiles files_of(const wire::GrainSpec &spec) {
    core::GrainFiles files;
    bool for_all = false;
    for (const wire::GrainFile &file : spec.files) {
        if (file.role == wire::FileRole::output) {
            files.outputs.push_back(file);
            continue;
        }
        files.digests.push_back(file.digest);
        if (file.role != wire::FileRole::program) continue;
        for_all = for_all || file.binary_class.empty();
        files.binary_classes.push_back(file.binary_class);
    }
    if (for_all) files.binary_classes.clear();
    std::sort(files.binary_classes.begin(), files.binary_classes.end());
    std::sort(files.digests.begin(), files.digests.end());
    files.digests.erase(std::unique(files.digests.begin(), files.digests.end()), files.digests.end());
    return files;
}

}  // namespace dcs::turn
