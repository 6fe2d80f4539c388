#pragma once
// Named resources: what hosts and the pool offer, and what grains ask for, as text.
//
//   a demand: gpu=1,scratch_gb=20           NAME=AMOUNT, joined by commas
//   an offer: gpu=[0,1,4-7],scratch_gb=200  also NAME=[INDEX,...]: as many as there are indices, each used by one grain
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace dcs {

struct Offer {
    std::int64_t amount = 0;
    std::vector<std::int32_t> indices;  // ascending; none: it is only counted
    bool operator==(const Offer &) const = default;
};
using Offers = std::map<std::string, Offer, std::less<>>;
using Amounts = std::map<std::string, std::int64_t, std::less<>>;  // by the names of resources

// Offered by hosts that run grains with an image, one unit for each; such a grain demands 1.
inline constexpr const char *container_resource = "container";
// Its indices are numbers of CPUs: a grain that has some runs on these only.
inline constexpr const char *cpu_resource = "cpu";

bool is_resource_name(std::string_view name);  // [a-z][a-z0-9_]*, at most 32
Result<Amounts> amounts_of(std::string_view demand);
Result<Offers> offers_of(std::string_view offer);
// As above, in the order of the names.
std::string resource_text(const Amounts &amounts);
std::string resource_text(const Offers &offers);

// Of the indices of each name in `offers` that `asks` has, the lowest that are not among `taken`; for a name without
// indices nothing. Code::limit: too few are left.
using Indices = std::map<std::string, std::vector<std::int32_t>, std::less<>>;
Result<Indices> choose_indices(const Amounts &asks, const Offers &offers, const std::vector<const Indices *> &taken);
// What a grain has: all that it demands, by both texts. Errors as of these functions.
struct GivenResources {
    Amounts amounts;
    Indices indices;
};
Result<GivenResources> given_of(std::string_view demand, std::string_view offers,
                                const std::vector<const Indices *> &taken);
// Its environment: DCS_RESOURCE_GPU=0,2 (or the amount), and CUDA_VISIBLE_DEVICES.
std::vector<std::string> resource_environment(const GivenResources &given);
bool is_resource_variable(std::string_view item, const GivenResources &given);  // "NAME=value" of those

// CPUs, as a resource: empty if this process may use all of them; "grains cannot use CPU 7 on this host, only 0,1".
std::string lacks_cpus(const std::vector<std::int32_t> &cpus);
// As offers_of(), of this host: Code::invalid also for CPUs that it lacks.
Result<Offers> offers_of_this_host(std::string_view offer);

}  // namespace dcs
