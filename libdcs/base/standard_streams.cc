#include "base/standard_streams.h"

#include <fcntl.h>

namespace dcs {

void occupy_standard_streams() {
    for (int fd = 0; fd <= 2; ++fd)
        if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) return;
}

}  // namespace dcs
