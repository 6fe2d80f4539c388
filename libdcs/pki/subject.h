#pragma once
// The subject of a certificate: a role and a name, encoded in its only alternative name, a URI: "dcs:grainserver/h1".
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dcs::pki {

// client: a host that runs control programs; program: one control program, named USER/HOST/IDENT; backup: the
// passive backup, which connects to the scheduler and accepts connections of grain servers.
enum class Role : std::uint8_t { none, authority, scheduler, grain_server, client, program, backup };
const char *name_of(Role role);  // "a grain server"

// A name (base/text.h), or USER/HOST/IDENT of a program.
bool good_subject(Role role, const std::string &name);
std::string subject_uri(Role role, const std::string &name);
// Nothing unless the URI is the result of subject_uri() for a valid subject.
struct Subject {
    Role role = Role::none;
    std::string name;
};
std::optional<Subject> subject_of(std::string_view uri);

// The parts of a control program's name; nothing for a name of another form.
struct ProgramName {
    std::string user, host, ident;
};
std::optional<ProgramName> program_name(const std::string &name);
std::string name_of(const ProgramName &program);

}  // namespace dcs::pki
