#pragma once
// Everything for peers and bytes of release 0.1 alone, to be removed when they are no longer read: the order of
// the fields of structs whose list is another one now, and what a new value means to such a peer.
#include <cstdint>

#include "base/limits.h"
#include "base/status.h"
#include "wire/archive_rules.h"

namespace dcs::wire {

// Each is called with its struct, which is not declared here.
template <class A, class Spec> void list_of_spec_8(A &a, Spec &x) {
    a &at_most(limits::argv_items, DCS_FIELD(argv)) & at_most(limits::argv_items, DCS_FIELD(env)) & DCS_FIELD(input) &
        DCS_FIELD(demands.host_class) & DCS_FIELD(demands.thrash) & DCS_FIELD(demands.urgent) &
        DCS_FIELD(demands.notice) & DCS_FIELD(demands.attempts) & at_most(limits::path_bytes, DCS_FIELD(directory)) &
        at_most(limits::label_bytes, DCS_FIELD(label)) & DCS_FIELD(demands.cores) & DCS_FIELD(demands.memory_mb) &
        DCS_FIELD(demands.wall_s) & at_most(limits::grain_files, DCS_FIELD(files));
}
template <class A, class Row> void list_of_row_8(A &a, Row &x) {
    a &DCS_FIELD(session) & DCS_FIELD(grain) & at_most(limits::name_bytes, DCS_FIELD(user)) &
        at_most(limits::name_bytes, DCS_FIELD(state)) & at_most(limits::name_bytes, DCS_FIELD(host)) &
        at_most(limits::label_bytes, DCS_FIELD(label)) & DCS_FIELD(incarnation) & DCS_FIELD(demands.host_class) &
        DCS_FIELD(restarts) & DCS_FIELD(failures) & DCS_FIELD(exit_code) & DCS_FIELD(signal) & DCS_FIELD(result_index) &
        DCS_FIELD(cpu_s) & DCS_FIELD(run_cpu_s) & DCS_FIELD(saved_cpu_s) & DCS_FIELD(last_contact_s) &
        DCS_FIELD(checkpoint_age_s) & DCS_FIELD(out_length) & DCS_FIELD(err_length) & DCS_FIELD(checkpoint_length) &
        DCS_FIELD(demands.thrash) & DCS_FIELD(demands.notice) & DCS_FIELD(demands.attempts) & DCS_FIELD(demands.cores) &
        DCS_FIELD(demands.memory_mb) & DCS_FIELD(demands.wall_s) & DCS_FIELD(demands.urgent) & DCS_FIELD(message) &
        at_most(limits::argv_items, DCS_FIELD(argv)) & at_most(limits::nogo_items, DCS_FIELD(nogo)) & DCS_FIELD(moves) &
        at_most(limits::grain_files, DCS_FIELD(files));
}
template <class A, class Launch> void list_of_launch_8(A &a, Launch &x) {
    a &DCS_FIELD(key) & DCS_FIELD(incarnation) & at_most(limits::argv_items, DCS_FIELD(argv)) &
        at_most(limits::argv_items, DCS_FIELD(env)) & at_most(limits::path_bytes, DCS_FIELD(directory)) &
        DCS_FIELD(input) & DCS_FIELD(checkpoint_length) & DCS_FIELD(input_base) & DCS_FIELD(next_seq) &
        DCS_FIELD(demands.notice) & DCS_FIELD(demands.wall_s) & DCS_FIELD(demands.memory_mb) & DCS_FIELD(account) &
        at_most(limits::grain_files, DCS_FIELD(files)) & DCS_FIELD(tentative);
}

// How many bytes at the end of a spec release 0.1 did not store: of no files, and of cores, memory_mb and wall_s if
// none of them was asked for.
template <class Spec> std::size_t left_out_of_spec_8(const Spec &x) {
    if (!x.files.empty()) return 0;
    const bool none = x.demands.cores == 0 && x.demands.memory_mb == 0 && x.demands.wall_s == 0;
    return sizeof(std::uint32_t) + (none ? 3 * sizeof(std::int32_t) : 0);
}

// The code of a LaunchResult: not_found was all that the grain would meet there again, every other the host's trouble.
constexpr Code launch_code_for_8(Code code) { return code == Code::invalid ? Code::not_found : code; }
constexpr Code launch_code_of_8(Code code) { return code == Code::invalid ? Code::io_error : code; }

}  // namespace dcs::wire
