#include "scheduler/record/session_on_disk.h"

#include "scheduler/record/paths.h"

namespace dcs::record {

Status of_file(const std::string &path, const Status &why) { return fail(why.code, path + ": " + why.text); }

Status contradicts(const SessionKey &key, GrainNumber number, const std::string &what) {
    return of_file(session_directory(key), fail(Code::io_error, "grain " + to_text(GrainKey{key, number}) + what));
}

core::HostId HostNames::id(const std::string &name) {
    if (name != last_name_) {
        last_ = look_up(name);
        last_name_ = name;
    }
    return last_;
}

core::HostId HostNames::look_up(const std::string &name) {
    if (const auto there = known_->find(name); there != known_->end()) return there->second;
    const auto next = static_cast<core::HostId>(known_->size() + further_.size());
    const auto [there, fresh] = ids_.emplace(name, next);
    if (fresh) further_.push_back(name);
    return there->second;
}

}  // namespace dcs::record
