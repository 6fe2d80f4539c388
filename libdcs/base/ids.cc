#include "base/ids.h"

namespace dcs {
std::string to_text(const SessionKey &key) { return key.user + "/" + std::to_string(key.number); }
std::string to_text(const GrainKey &key) { return to_text(key.session) + ":" + std::to_string(key.grain); }
std::string to_text(ConnId conn) { return std::to_string(static_cast<std::uint64_t>(conn)); }
}  // namespace dcs
