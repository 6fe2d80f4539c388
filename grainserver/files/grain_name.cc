#include "grainserver/files/grain_name.h"

#include "base/option_table.h"
#include "base/text.h"

namespace dcs::files {
namespace {
constexpr std::string_view plain = "_+-";

bool decode_name(std::string_view text, std::string &name) {
    const std::optional<std::string> decoded = percent_decoded(text, plain);
    name = decoded.value_or("");
    return decoded.has_value();
}
}  // namespace

std::string encoded_name(std::string_view name) { return percent_encoded(name, plain); }

std::string directory_name(const std::string &host, const GrainKey &key, Incarnation incarnation) {
    return encoded_name(host) + "," + encoded_name(key.session.user) + "," + std::to_string(key.session.number) + "," +
           std::to_string(key.grain) + "," + std::to_string(incarnation);
}

Result<LeaseName> parse_directory_name(std::string_view name) {
    LeaseName lease;
    const std::vector<std::string> parts = split(name, ',');
    if (parts.size() != 5 || !decode_name(parts[0], lease.host) || !decode_name(parts[1], lease.key.session.user) ||
        !read_number(parts[2], lease.key.session.number) || !read_number(parts[3], lease.key.grain) ||
        !read_number(parts[4], lease.incarnation) || directory_name(lease.host, lease.key, lease.incarnation) != name)
        return fail(Code::invalid, "not the directory of a grain");
    return lease;
}

}  // namespace dcs::files
