#include "host_class.h"

#include "client/query.h"
#include "commands/dcs/frame/this_pool.h"

namespace dcs::commands {

std::optional<Failure> take_class(const Arguments &arguments, std::uint32_t &mask) {
    const auto names = arguments.value("class");
    if (!names) return std::nullopt;
    const auto found = client::mask_of_classes(this_pool(), *names);
    if (found) {
        mask = *found;
        return std::nullopt;
    }
    Failure failure = call_failure("--class " + *names, found.status());
    if (found.status().code == Code::not_found)
        failure.hint = "`dcs host ls` shows the classes of hosts; lines `class NAME=MASK` of the host table name them";
    return failure;
}

}  // namespace dcs::commands
