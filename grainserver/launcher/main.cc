// dcs_launcher --dir DIR --name NAME ...: started by dcs_grainserver, which it may survive.
#include <cstdio>
#include <string>

#include <unistd.h>

#include "base/program_start.h"
#include "grainserver/files/say.h"
#include "grainserver/launcher/launcher.h"

int main(int argc, char **argv) {
    dcs::launcher::LauncherOptions options{.name = "server"};
    bool understood = argc % 2 == 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string option = argv[i], value = argv[i + 1];
        if (option == "--dir") options.directory = value;
        else if (option == "--name") options.name = value;
        else if (option == "--slots-dir") options.slots = value;
        else if (option == "--cgroups" && (value == "auto" || value == "none")) options.cgroups = value == "auto";
        else understood = false;
    }
    if (options.directory.empty() || !understood) {
        std::fprintf(stderr,
                     "usage: dcs_launcher --dir DIRECTORY [--name NAME] [--slots-dir DIRECTORY] [--cgroups auto|none]\n"
                     "The parent of a grain server's grains; dcs_grainserver starts it.\n");
        return 2;
    }
    dcs::clean_start();
    ::setsid();
    dcs::launcher::Launcher launcher;
    if (const dcs::Status s = launcher.open(options); !s) {
        std::fprintf(stderr, "dcs_launcher: %s\n", s.text.c_str());
        return s.code == dcs::Code::refused ? 4 : 1;
    }
    const dcs::Status s = launcher.run();
    if (!s) dcs::files::say(s.text + ", so the launcher stops: another one ends its grains");
    return s ? 0 : 1;
}
