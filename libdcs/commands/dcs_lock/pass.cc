// dcs_lock pass: judges all atoms of one script by the script's start time (the paper's `now`), so that they
// expire and elapse together.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "call.h"
#include "base/json.h"
#include "base/text.h"
#include "request.h"
#include "say.h"

namespace dcs::lock_command {

int begin_pass(const locks::World &world, const Options &options) {
    const std::string text = pass_text(world);
    if (options.words.empty()) {
        if (options.json) print(JsonObject("dcs_lock.pass/1").add("DCS_LOCK_NOW", text).text() + "\n");
        else print("DCS_LOCK_NOW=" + text + "; export DCS_LOCK_NOW\n");
        return exits::ok;
    }
    ::setenv("DCS_LOCK_NOW", text.c_str(), 1);
    const std::vector<char *> argv = pointers_to(options.words);
    ::execvp(argv[0], argv.data());
    const int error = errno;
    Outcome outcome = failed("", options.words[0] + ": " + std::strerror(error));
    outcome.exit = error == ENOENT ? exits::not_found : exits::cannot_execute;
    return tell(options, outcome);
}

}  // namespace dcs::lock_command
