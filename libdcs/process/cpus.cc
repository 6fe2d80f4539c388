#include "process/cpus.h"

#include <sched.h>

namespace dcs {

std::string lacks_cpus(const std::vector<std::int32_t> &cpus) {
    cpu_set_t usable;
    if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return "";  // more than a set holds
    for (const std::int32_t cpu : cpus) {
        if (cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(static_cast<std::size_t>(cpu), &usable)) continue;
        std::string all;
        for (std::size_t i = 0; i < CPU_SETSIZE; ++i)
            if (CPU_ISSET(i, &usable)) all += (all.empty() ? "" : ",") + std::to_string(i);
        return "grains cannot use CPU " + std::to_string(cpu) + " on this host, only " + all;
    }
    return "";
}

Result<Offers> offers_of_this_host(std::string_view offer) {
    Result<Offers> offers = offers_of(offer);
    if (!offers) return offers;
    const auto cpus = offers->find(cpu_resource);
    const std::string lacks = cpus == offers->end() ? "" : lacks_cpus(cpus->second.indices);
    if (lacks.empty()) return offers;
    return fail(Code::invalid, "`" + resource_text(Offers{*cpus}) + "`: " + lacks);
}

}  // namespace dcs
