// What failpoint() does in the scheduler that privileges.py pries with, when that is ordered to stop.
#include "base/failpoint.h"
#include "process/security/pry.h"
#include "scheduler/keeper/keeper.h"

namespace dcs {
namespace {

class SchedulerPry : public Pry {
public:
    SchedulerPry() : Pry("/state") {}
    void all() {
        common();
        look_up();
        own_files();
        keeper();
    }

private:
    void own_files() {
        const std::string dir = variable("DCS_PRY_DIR");
        open("key", dir + "/pki/authority-key.pem", O_RDONLY);
        open("pki", dir + "/pki", O_RDONLY | O_DIRECTORY);
        open("hosts", dir + "/hosts", O_RDONLY);
        open("hosts_write", dir + "/hosts", O_WRONLY);
        open("new_file", dir + "/new", O_WRONLY | O_CREAT);
    }
    void keeper() {
        using namespace keeper;
        Request request;
        request.ask = Ask::certificate;
        request.role = pki::Role::scheduler;
        request.name = "scheduler";
        say("ask_scheduler", to_packet(request));
        request.role = pki::Role::authority;
        say("ask_authority", to_packet(request));
        request.role = pki::Role::grain_server;
        request.name = "../h1";
        request.point = *point_of(*pki::public_key_of(pki::new_key()));
        say("ask_name", to_packet(request));
        request.name = std::string("h1\0x", 4);
        say("ask_hidden", to_packet(request));
        request.name = "h1";
        const std::string packet = to_packet(request);
        say("ask_longer", packet + "x");
        say("ask_huge", std::string(100'000, 'A'));
        say("ask_unknown", std::string(packet.size(), '\xff'));
        Request own;
        own.ask = Ask::own_certificate;
        own.point = request.point;
        say("ask_own", to_packet(own));
        say("ask_good", to_packet(request));
    }
};

}  // namespace

void failpoint(const char *name) noexcept {
    static SchedulerPry pry;
    if (std::strcmp(name, "shell.stop.begin") == 0) pry.all();
}

}  // namespace dcs
