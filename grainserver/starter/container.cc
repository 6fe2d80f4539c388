#include "grainserver/starter/container.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/program_start.h"
#include "base/text.h"
#include "base/require.h"

namespace dcs::starter {
namespace {

constexpr const char *images = "images";

// The last one belongs to `owner`, who alone may enter it.
Status make_own_folder(int base, const std::string &name, std::uint32_t owner) {
    if (::mkdirat(base, images, 0711) != 0 && errno != EEXIST) return file_error(images, errno);
    const Fd all(open_beneath(base, images, O_RDONLY | O_DIRECTORY));
    // Grains of the server's own account may have made it, for themselves.
    if (!all || ::fchmod(all.get(), 0711) != 0) return file_error(images, errno);
    const bool made = ::mkdirat(all.get(), name.c_str(), 0700) == 0;
    if (!made && errno != EEXIST) return file_error(name, errno);
    const Fd folder(open_beneath(all.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
    struct stat st {};
    if (!folder || ::fstat(folder.get(), &st) != 0) return file_error(name, errno);
    if (st.st_uid != owner && ::fchown(folder.get(), owner, owner) != 0) return file_error(name, errno);
    return Status::ok();
}

// The account cannot reach it by its name.
Result<Fd> open_image(int base, const std::string &path) {
    Fd file(open_beneath(base, path.c_str(), O_RDONLY));
    struct stat st {};
    if (!file || ::fstat(file.get(), &st) != 0) return file_error("the image", errno);
    if (!S_ISREG(st.st_mode) || st.st_uid != ::geteuid())
        return fail(Code::io_error, "the image is no file of the grain server's");
    if (::fchmod(file.get(), (st.st_mode & 0111) | 0444) != 0) return file_error("the image", errno);
    return file;
}

}  // namespace

Result<ImagePlace> place_image(int base, const std::string &directory, const files::LaunchRecord &launch) {
    const files::FileRecord *image = files::image_of(launch.files);
    DCS_REQUIRE(image != nullptr, "only a grain with an image needs a place for it");
    const std::string hex = hex_of(image->digest);
    Result<Fd> archive = open_image(base, "library/" + hex.substr(0, 2) + "/" + hex + "/content");
    if (!archive) return archive.status();
    std::string store = directory + "/" + images;
    if (launch.account.change) {
        const std::string account = std::to_string(launch.account.uid);
        if (const Status s = make_own_folder(base, account, launch.account.uid); !s) return s;
        store += "/" + account;
    }
    return ImagePlace{std::move(*archive), std::move(store), files::usual_images_mb};
}

std::string container_runner() { return dcs::own_folder() + "/dcs_container"; }

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
                                      std::to_string(place.archive.get()),
                                      place.store,
                                      hex_of(image->digest),
                                      grains,
                                      std::to_string(launch.rungs),
                                      std::to_string(place.images_mb),
                                      gpus,
                                      brought ? launch.program : "",
                                      launch.directory,
                                      launch.program};
    words.insert(words.end(), launch.argv.begin(), launch.argv.end());
    return words;
}

}  // namespace dcs::starter
