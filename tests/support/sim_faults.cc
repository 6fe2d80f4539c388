// Calls of a SimDisk that fail.
#include "base/require.h"
#include "support/sim_disk.h"

namespace dcs::test {
namespace {

constexpr std::uint64_t call_limit = 2'000'000;  // more than that is a loop that does not end

}  // namespace

const char *name_of(Fault fault) {
    switch (fault) {
    case Fault::no_space: return "no space";
    case Fault::limit: return "no descriptor";
    case Fault::io_error: return "I/O error";
    case Fault::io_error_done: return "I/O error, done nevertheless";
    case Fault::short_write: return "short write";
    }
    return "";
}

void SimDisk::fail_at(std::uint64_t n, Fault fault, bool from_then_on) {
    calls_ = 0;
    fail_at_ = n;
    fault_ = fault;
    from_then_on_ = from_then_on;
    faults_hit_ = 0;
}

void SimDisk::clear_faults() {
    fail_at_ = 0;
    fail_syncs_ = false;
}

bool SimDisk::enter(Kind kind, Fault &fault) {
    ++calls_;
    if (kind == Kind::sync) ++syncs_;
    DCS_REQUIRE(calls_ < call_limit, "the store does not come to an end");
    if (kind == Kind::sync && fail_syncs_) {
        fault = Fault::io_error;
        ++faults_hit_;
        return true;
    }
    if (fail_at_ == 0 || calls_ < fail_at_ || (calls_ > fail_at_ && !from_then_on_)) return false;
    fault = fault_;
    ++faults_hit_;
    return true;
}

Status SimDisk::as_status(Fault fault, const std::string &path) {
    Code code = Code::io_error;
    if (fault == Fault::no_space || fault == Fault::short_write) code = Code::no_space;
    if (fault == Fault::limit) code = Code::limit;
    return fail(code, path + ": planted fault, " + name_of(fault));
}

}  // namespace dcs::test
