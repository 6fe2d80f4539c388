#include "call.h"
#include "base/version.h"
#include "help.h"
#include "option_table.h"
#include "parse.h"
#include "request.h"
#include "say.h"

namespace dcs::lock_command {

int run_lock_command(const locks::World &world, const std::vector<std::string> &line) {
    Options options;
    if (line.empty()) {
        complain("the NAME of a lock is missing; `dcs_lock --help` shows the forms");
        return exits::failed;
    }
    if (const Status status = parse(line, options); !status) return tell(options, failed("", status));
    switch (options.verb) {
    case Verb::run: return run_command(world, options);
    case Verb::descriptor: return lock_descriptor(options);
    case Verb::get: return get_lock(world, options);
    case Verb::put: return put_lock(world, options);
    case Verb::list: return list_locks(world, options);
    case Verb::check: return check_lock(world, options);
    case Verb::wait: return wait_for_lock(world, options);
    case Verb::breaking: return break_lock(world, options);
    case Verb::log: return print_log(options);
    case Verb::advise: return advise(world, options);
    case Verb::doctor: return examine_locks(world, options);
    case Verb::pass: return begin_pass(world, options);
    case Verb::version: print("dcs_lock (DCS) " DCS_VERSION "\n"); return exits::ok;
    case Verb::help: print(std::string(help_text) + "\n" + option_list(option_rows()) + help_end); return exits::ok;
    }
    return exits::failed;
}

}  // namespace dcs::lock_command
