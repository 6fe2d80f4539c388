#include "client/rows.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/require.h"
#include "base/sized.h"

namespace dcs::client {
namespace {

void take(const char *&to, const std::string &from) { to = from.c_str(); }
template <class To, class From> void take(To &to, const From &from) { to = from; }
// Of a field with the same name and meaning in both.
#define DCS_SAME(name) take(to.name, from.name)

// What answers point to. The lists do not move when more come.
struct Lists {
    std::deque<std::vector<const char *>> names;
    std::deque<std::vector<char *>> argvs;
    std::deque<std::string> digests;

    const char *const *of(const std::vector<std::string> &strings) {  // NULL for none
        if (strings.empty()) return nullptr;
        std::vector<const char *> &list = names.emplace_back();
        for (const std::string &text : strings) list.push_back(text.c_str());
        return list.data();
    }
    char **argv_of(std::vector<std::string> &words) {
        if (words.empty()) return nullptr;
        std::vector<char *> &list = argvs.emplace_back();
        for (std::string &word : words) list.push_back(word.data());
        list.push_back(nullptr);
        return list.data();
    }
};

struct Answer {
    Answer(const d_row_sizes &of, wire::QueryReply came, std::string caller)
        : sizes(of),
          reply(std::move(came)),
          user(std::move(caller)),
          hosts(of.host_row),
          sessions(of.session_row),
          grains(of.grain_row),
          head(of.info) {}
    const d_row_sizes sizes;
    wire::QueryReply reply;
    const std::string user;
    Rows<d_host_row> hosts;
    Rows<d_session_row> sessions;
    Rows<d_grain_row> grains;
    Rows<d_info> head;
    Lists lists;
    std::deque<Rows<d_move_row>> moves;
    std::deque<Rows<d_file_row>> files;
};

struct Why {
    Why(const d_row_sizes &sizes, wire::Explanation came)
        : reply(std::move(came)), rows(sizes.reason), head(sizes.explanation) {}
    const wire::Explanation reply;
    Rows<d_reason> rows;
    Rows<d_explanation> head;
    Lists lists;
};

d_info row_of(const wire::SystemRow &from) {
    d_info to{};
    DCS_SAME(epoch), DCS_SAME(turn), DCS_SAME(up_s), DCS_SAME(ready), DCS_SAME(running), DCS_SAME(hosts_active),
        DCS_SAME(sessions_active), DCS_SAME(version);
    to.scheduler_pid = from.pid;
    to.hosts_total = from.hosts;
    return to;
}

d_host_row row_of(Lists &lists, const wire::HostRow &from) {
    d_host_row to{};
    DCS_SAME(name), DCS_SAME(state), DCS_SAME(binary_class), DCS_SAME(host_class), DCS_SAME(slots), DCS_SAME(running),
        DCS_SAME(last_call_in_s), DCS_SAME(interval_s), DCS_SAME(alert_s), DCS_SAME(limit_s), DCS_SAME(extended_s),
        DCS_SAME(load), DCS_SAME(free_memory_kb), DCS_SAME(cores), DCS_SAME(cores_used), DCS_SAME(memory_mb),
        DCS_SAME(memory_used_mb), DCS_SAME(connected), DCS_SAME(drained), DCS_SAME(settings), DCS_SAME(note),
        DCS_SAME(blamed), DCS_SAME(blamed_lately), DCS_SAME(launched), DCS_SAME(finished), DCS_SAME(failed),
        DCS_SAME(given_back), DCS_SAME(cpu_s), DCS_SAME(confinement), DCS_SAME(class_names), DCS_SAME(time_zone_offset),
        DCS_SAME(resources), DCS_SAME(resources_used), DCS_SAME(drain_reason);
    to.user_count = from.users.size();
    to.users = lists.of(from.users);
    return to;
}

d_session_row row_of(const wire::SessionRow &from) {
    d_session_row to{};
    DCS_SAME(user), DCS_SAME(ident), DCS_SAME(state), DCS_SAME(session), DCS_SAME(ready), DCS_SAME(running),
        DCS_SAME(finished), DCS_SAME(killed), DCS_SAME(sent), DCS_SAME(saved_cpu_s), DCS_SAME(stored_bytes);
    return to;
}

d_move_row row_of(const wire::MoveRow &from) {
    d_move_row to{};
    DCS_SAME(reason), DCS_SAME(host), DCS_SAME(detail), DCS_SAME(incarnation), DCS_SAME(age_s);
    return to;
}

d_file_row row_of(Lists &lists, const wire::GrainFile &from) {
    d_file_row to{};
    DCS_SAME(name), DCS_SAME(size);
    to.digest = lists.digests.emplace_back(hex_of(from.digest)).c_str();
    return to;
}

// What D_Q_GRAIN tells besides.
void put_detail(Answer &a, wire::GrainRow &from, d_grain_row &to) {
    to.argv = a.lists.argv_of(from.argv);
    to.env = a.lists.argv_of(from.env);
    to.nogo_count = from.nogo.size();
    to.nogo = a.lists.of(from.nogo);
    if (!from.moves.empty()) {
        auto &moves = a.moves.emplace_back(a.sizes.move_row);
        for (const wire::MoveRow &move : from.moves) moves.add(row_of(move));
        to.move_count = moves.count();
        to.moves = moves.data();
    }
    if (!from.files.empty()) {
        auto &files = a.files.emplace_back(a.sizes.file_row);
        for (const wire::GrainFile &file : from.files) files.add(row_of(a.lists, file));
        to.file_count = files.count();
        to.files = files.data();
    }
}

d_grain_row row_of(Answer &a, wire::GrainRow &from) {
    d_grain_row to{};
    DCS_SAME(user), DCS_SAME(state), DCS_SAME(host), DCS_SAME(label), DCS_SAME(message), DCS_SAME(session),
        DCS_SAME(grain), DCS_SAME(starts), DCS_SAME(restarts), DCS_SAME(failures), DCS_SAME(exit_code),
        DCS_SAME(signal), DCS_SAME(result_index), DCS_SAME(incarnation), DCS_SAME(cpu_s), DCS_SAME(run_cpu_s),
        DCS_SAME(saved_cpu_s), DCS_SAME(last_contact_s), DCS_SAME(checkpoint_age_s), DCS_SAME(out_length),
        DCS_SAME(err_length), DCS_SAME(checkpoint_length), DCS_SAME(user_s), DCS_SAME(system_s), DCS_SAME(max_rss_kb),
        DCS_SAME(minor_faults), DCS_SAME(major_faults), DCS_SAME(in_blocks), DCS_SAME(out_blocks),
        DCS_SAME(class_names), DCS_SAME(directory);
    wire::put_demands(from.demands, to);
    put_detail(a, from, to);
    return to;
}

d_reason row_of(Lists &lists, const wire::WhyRow &from) {
    d_reason to{};
    DCS_SAME(reason), DCS_SAME(text), DCS_SAME(hint), DCS_SAME(hosts);
    to.name_count = from.names.size();
    to.names = lists.of(from.names);
    return to;
}

}  // namespace

// A struct that the program does not know, as its list of sizes is shorter, has the size 0. Others are as they must be.
Result<d_row_sizes> known_sizes(const d_row_sizes *from) {
    auto sizes = known(from, "sizes");
    if (!sizes) return sizes;
    const std::size_t all[] = {sizes->info,     sizes->host_row, sizes->session_row, sizes->grain_row,
                               sizes->move_row, sizes->file_row, sizes->explanation, sizes->reason};
    for (const std::size_t size : all)
        if (size != 0 && !sound_size<d_info>(size)) return bad_struct_size("sizes", size);
    const std::size_t least = offsetof(d_info, epoch);  // by which the library finds its block again
    return sizes->info >= least && sizes->explanation >= least ? sizes : bad_struct_size("sizes", sizes->info);
}

d_info *info_of(const d_row_sizes &sizes, wire::QueryReply reply, std::string user) {
    auto answer = std::make_unique<Answer>(sizes, std::move(reply), std::move(user));
    Answer &a = *answer;
    for (const auto &row : a.reply.hosts) a.hosts.add(row_of(a.lists, row));
    for (const auto &row : a.reply.sessions) a.sessions.add(row_of(row));
    for (auto &row : a.reply.grains) a.grains.add(row_of(a, row));
    d_info to = row_of(a.reply.system);
    to.of_library = &a;
    to.last_session = a.reply.last_number;
    to.host_count = a.hosts.count();
    to.session_count = a.sessions.count();
    to.grain_count = a.grains.count();
    to.hosts = a.hosts.data();
    to.sessions = a.sessions.data();
    to.grains = a.grains.data();
    to.user = a.user.c_str();
    a.head.add(to);
    DCS_REQUIRE(a.head.count() == 1, "an answer has a head, through which it is released");
    return answer.release()->head.data();
}
void free_info(d_info *info) {
    if (info) delete static_cast<Answer *>(info->of_library);
}

d_explanation *explanation_of(const d_row_sizes &sizes, wire::Explanation answer) {
    auto why = std::make_unique<Why>(sizes, std::move(answer));
    const wire::Explanation &from = why->reply;
    for (const auto &row : from.reasons) why->rows.add(row_of(why->lists, row));
    d_explanation to{};
    DCS_SAME(state), DCS_SAME(summary), DCS_SAME(can_run), DCS_SAME(ahead);
    to.of_library = why.get();
    to.reason_count = why->rows.count();
    to.reasons = why->rows.data();
    why->head.add(to);
    DCS_REQUIRE(why->head.count() == 1, "an answer has a head, through which it is released");
    return why.release()->head.data();
}
void free_explanation(d_explanation *explanation) {
    if (explanation) delete static_cast<Why *>(explanation->of_library);
}

d_result result_of(wire::GrainResult &from) {
    const wire::Usage &usage = from.usage;
    d_result to{};
    DCS_SAME(completed);
    to.sent = from.returned > 0 ? from.returned : from.sent;  // release 0.1 does not tell them apart
    to.result_index = from.sent - 1;
    to.grain_num = from.grain;
    to.termsig = from.signal;
    to.retcode = from.code;
    to.rusage.ru_utime = {usage.user_us / 1'000'000, usage.user_us % 1'000'000};
    to.rusage.ru_stime = {usage.system_us / 1'000'000, usage.system_us % 1'000'000};
    to.rusage.ru_maxrss = usage.max_rss_kb;
    to.rusage.ru_minflt = usage.minor_faults;
    to.rusage.ru_majflt = usage.major_faults;
    to.rusage.ru_inblock = usage.in_blocks;
    to.rusage.ru_oublock = usage.out_blocks;
    to.outlen = from.out_length;
    to.errlen = from.err_length;
    to.output = from.out.data();
    to.error = from.err.data();
    return to;
}

}  // namespace dcs::client
