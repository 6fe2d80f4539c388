// dcs_launcher --dir DIR --name NAME: started by dcs_grainserver, which need not live as long.
#include <cstdio>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "grainserver/launcher/launcher.h"

int main(int argc, char **argv) {
    std::string directory, name = "server";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--dir") == 0) directory = argv[i + 1];
        else if (std::strcmp(argv[i], "--name") == 0) name = argv[i + 1];
        else directory.clear();
    }
    if (directory.empty() || argc % 2 == 0) {
        std::fprintf(stderr, "usage: dcs_launcher --dir DIRECTORY [--name NAME]\n"
                             "The parent of a grain server's grains; dcs_grainserver starts it.\n");
        return 2;
    }
    // Descriptors 0 to 2 must be something, or a grain's files would take their places.
    for (int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC); fd >= 0; fd = ::open("/dev/null", O_RDWR | O_CLOEXEC))
        if (fd > 2) {
            ::close(fd);
            break;
        }
    ::setsid();
    dcs::launcher::Launcher launcher;
    if (const dcs::Status s = launcher.open(directory, name); !s) {
        std::fprintf(stderr, "dcs_launcher: %s\n", s.text.c_str());
        return s.code == dcs::Code::refused ? 4 : 1;
    }
    launcher.run();
    return 0;
}
