// dcs.hpp: dcs.h for C++20. Header only; link with -ldcs. What the calls mean stands in dcs.h.
//
//     dcs::session session = dcs::session::resume("squares", 1);
//     for (int i = 0; i < 100; ++i)
//         session.submit(i, {.argv = {"/usr/bin/factor"}, .input = std::to_string(i * i + 1) + "\n"});
//     for (const dcs::result &result : session.results()) std::cout << result.output;
//     session.close();
//
// Every failure is an exception, dcs::error. Nothing here is a return code.
#ifndef DCS_HPP
#define DCS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pwd.h>
#include <unistd.h>

#include "dcs.h"

namespace dcs {

// A call failed. what(): what happened here and what to do about it. After session::submit of many grains: taken() of
// them, from the beginning, are submitted; refused() is the index of the one on account of which the call ended, or
// their number when it was not about one of them.
class error : public std::runtime_error {
public:
    error(int code, std::string text, std::size_t taken = 0, std::size_t refused = 0)
        : std::runtime_error(text + " (" + d_strerror(code) + ")"), code_(code), text_(std::move(text)), taken_(taken),
          refused_(refused) {}
    int code() const noexcept { return code_; }                           // D_E_...
    const char *name() const noexcept { return d_errorname(code_); }      // "D_E_..."
    const std::string &text() const noexcept { return text_; }            // what happened
    const char *hint() const noexcept { return d_strerror(code_); }       // what to do
    std::size_t taken() const noexcept { return taken_; }
    std::size_t refused() const noexcept { return refused_; }

private:
    int code_;
    std::string text_;
    std::size_t taken_, refused_;
};

inline void check(int code) {
    if (code != NO_ERROR) throw error(code, d_errortext());
}

// Names this program; all sessions of a process have one ident.
inline void authorize(const std::string &ident) { check(d_get_auth(ident.c_str())); }

struct file_closer {
    void operator()(std::FILE *file) const noexcept { std::fclose(file); }
};
using stream = std::unique_ptr<std::FILE, file_closer>;  // open for reading

inline std::string read_all(std::FILE *file) {
    std::string text;
    char piece[16384];
    for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, file)) > 0;) text.append(piece, n);
    if (std::ferror(file) != 0) throw error(D_E_IO_ERROR, "a stream cannot be read");
    return text;
}

// A file that goes with a grain; see d_file.
struct file {
    std::string name = {};          // below the working directory; empty for programs
    std::string path = {};
    std::string binary_class = {};  // programs: for hosts of this class; empty: for all
    bool executable = false;
};

// A grain to submit; see d_grain.
struct grain {
    std::vector<std::string> argv = {};
    std::string input = {};              // may hold any byte
    std::vector<std::string> env = {};   // "NAME=value"
    unsigned host_class = 0;
    int thrash = 0;
    bool urgent = false;
    int notice = 0;
    int attempts = 3;
    std::string directory = {};          // empty: a private one
    std::string label = {};
    int cores = 0, memory_mb = 0, wall_s = 0;
    std::vector<file> files = {}, programs = {};
    std::vector<std::string> outputs = {};
    std::string input_path = {};         // instead of input
    int input_fd = -1;                   // likewise, to its end
};

struct order {
    int number = 0;
    grain what = {};
};

// The end of a grain, with strings of its own.
struct result {
    int session = 0, grain = 0;
    int index = 0;                       // in the order of finishing, from 0
    int completed = 0;                   // results that there are so far
    int signal = 0, code = 0;
    struct rusage usage = {};
    std::string output = {}, error = {};  // the first 20 KiB
    std::size_t output_length = 0, error_length = 0;

    bool ok() const noexcept { return signal == 0 && code == 0; }
    stream open(const char *which) const {  // "out" or "err"
        std::FILE *opened = nullptr;
        check(d_grain_stream(nullptr, session, grain, which, &opened));
        return stream(opened);
    }
    stream open_file(const std::string &name) const {  // that it brought back
        std::FILE *opened = nullptr;
        check(d_grain_file(nullptr, session, grain, name.c_str(), &opened));
        return stream(opened);
    }
    std::string whole_output() const { return output.size() == output_length ? output : read_all(open("out").get()); }
    std::string whole_error() const { return error.size() == error_length ? error : read_all(open("err").get()); }
};

namespace detail {

inline const char *text_or_null(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

// A grain as C wants it. It points into `from`, which must outlive it.
class c_grain {
public:
    explicit c_grain(const grain &from) : argv_(pointers(from.argv)), env_(pointers(from.env)) {
        d_grain_init(&c);
        for (const std::string &name : from.outputs) outputs_.push_back(name.c_str());
        if (!from.outputs.empty()) outputs_.push_back(nullptr);
        fill(files_, from.files);
        fill(programs_, from.programs);
        c.gargv = argv_.data();
        c.genvv = env_.data();
        c.input = from.input.data();
        c.input_length = from.input.size();
        c.host_class = from.host_class;
        c.thrash = from.thrash;
        c.urgent = from.urgent ? 1 : 0;
        c.notice = from.notice;
        c.attempts = from.attempts;
        c.directory = text_or_null(from.directory);
        c.label = text_or_null(from.label);
        c.cores = from.cores;
        c.memory_mb = from.memory_mb;
        c.wall_s = from.wall_s;
        c.files = files_.data();
        c.file_count = files_.size();
        c.programs = programs_.data();
        c.program_count = programs_.size();
        c.outputs = outputs_.empty() ? nullptr : outputs_.data();
        c.input_path = text_or_null(from.input_path);
        c.input_fd = from.input_fd;
    }
    c_grain(c_grain &&) = default;
    c_grain(const c_grain &) = delete;
    d_grain c;

private:
    static std::vector<char *> pointers(const std::vector<std::string> &strings) {
        std::vector<char *> to;
        for (const std::string &s : strings) to.push_back(const_cast<char *>(s.c_str()));  // C's argv is not const
        to.push_back(nullptr);
        return to;
    }
    static void fill(std::vector<d_file> &to, const std::vector<file> &from) {
        for (const file &f : from)
            to.push_back({text_or_null(f.name), f.path.c_str(), text_or_null(f.binary_class), f.executable ? 1 : 0});
    }
    std::vector<char *> argv_, env_;
    std::vector<d_file> files_, programs_;
    std::vector<const char *> outputs_;
};

inline result result_of(int session, const d_result &row) {
    constexpr std::size_t most = 20 * 1024;
    return {.session = session, .grain = row.grain_num, .index = row.sent - 1, .completed = row.completed,
            .signal = row.termsig, .code = row.retcode, .usage = row.rusage,
            .output = std::string(row.output, std::min(row.outlen, most)),
            .error = std::string(row.error, std::min(row.errlen, most)),
            .output_length = row.outlen, .error_length = row.errlen};
}

// The name by which the scheduler knows this user.
inline std::string login_name() {
    const passwd *entry = ::getpwuid(::geteuid());
    return entry != nullptr ? entry->pw_name : "uid" + std::to_string(::geteuid());
}

struct info_freer {
    void operator()(d_info *info) const noexcept { d_query_free(info); }
};

}  // namespace detail

// An answer of d_query, released with its owner: for (const d_host_row &host : dcs::query(D_Q_HOSTS).hosts()) ...
class answer {
public:
    explicit answer(d_info *info) noexcept : info_(info) {}
    const d_info *operator->() const noexcept { return info_.get(); }
    std::span<const d_host_row> hosts() const & noexcept { return {info_->hosts, info_->host_count}; }
    std::span<const d_session_row> sessions() const & noexcept { return {info_->sessions, info_->session_count}; }
    std::span<const d_grain_row> grains() const & noexcept { return {info_->grains, info_->grain_count}; }

private:
    std::unique_ptr<d_info, detail::info_freer> info_;
};

inline answer query(int type, int session = -1, int grain = -1, const char *user = nullptr) {
    d_info *info = nullptr;
    check(d_query(type, user, session, grain, &info));
    return answer(info);
}

class session;

// The results that are left, in the order in which grains finished; each step waits for the next one. They are taken up
// to `batch` at a time, and a batch counts as sent when the next is asked for. In the replay of a session that was closed
// before all of its grains had ended, D_E_REPLAY_END follows the recorded results.
class result_range {
public:
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using iterator_concept = std::input_iterator_tag;
        using value_type = result;
        using difference_type = std::ptrdiff_t;
        using pointer = const result *;
        using reference = const result &;
        iterator() = default;
        explicit iterator(result_range *range) : range_(range) { next(); }
        const result &operator*() const { return now_; }
        const result *operator->() const { return &now_; }
        iterator &operator++() {
            next();
            return *this;
        }
        void operator++(int) { next(); }
        bool operator==(std::default_sentinel_t) const noexcept { return range_ == nullptr; }

    private:
        inline void next();
        result_range *range_ = nullptr;
        result now_ = {};
    };
    iterator begin() { return iterator(this); }
    std::default_sentinel_t end() const noexcept { return {}; }

private:
    friend class session;
    result_range(session *of, int batch) : session_(of), batch_(batch) {}
    session *session_;
    int batch_;
};

// A session of this program. Closed at the end of its scope; left open when an exception ends the scope, so that a rerun
// goes on in it. Whoever wants to know that closing worked calls close(). To be used by one thread at a time.
class session {
public:
    // A new session; one that is there from an earlier run, or a new one; a terminated one that becomes active again.
    static session open(const std::string &ident, int number) {
        authorize(ident);
        check(d_open_ses(number));
        return session(number);
    }
    static session resume(const std::string &ident, int number, bool sent_reset = true) {
        authorize(ident);
        check(d_resume_ses(number, sent_reset ? 1 : 0));
        return session(number);
    }
    static session reopen(const std::string &ident, int number, bool sent_reset = true) {
        authorize(ident);
        check(d_reopen_ses(number, sent_reset ? 1 : 0));
        return session(number);
    }
    // The session of this ident that is there from an earlier run, else a new one under the first free number.
    static session resume(const std::string &ident, bool sent_reset = true) {
        authorize(ident);
        const std::string user = detail::login_name();
        std::set<int> used;
        const answer known = query(D_Q_SESSIONS, -1, -1, user.c_str());
        for (const d_session_row &row : known.sessions()) {
            if (user != row.user) continue;
            if (ident == row.ident) return resume(ident, row.session, sent_reset);
            used.insert(row.session);
        }
        for (int number = 1;; ++number) {
            if (used.count(number) != 0) continue;
            const int code = d_resume_ses(number, sent_reset ? 1 : 0);
            if (code == D_E_SESSION_TAKEN || code == D_E_SESSION_CLOSED) continue;  // by another program, just now
            check(code);
            return session(number);
        }
    }
    session(session &&from) noexcept
        : number_(std::exchange(from.number_, 0)), open_(std::exchange(from.open_, false)), unwinding_(from.unwinding_),
          ready_(std::move(from.ready_)), next_(from.next_) {}
    session(const session &) = delete;
    session &operator=(session &&) = delete;
    ~session() {
        if (open_ && std::uncaught_exceptions() <= unwinding_) d_close_ses(number_);
    }

    int number() const noexcept { return number_; }

    // Durable when it returns. The same call again changes nothing.
    void submit(int number, const grain &what) {
        const detail::c_grain one(what);
        check(d_gexec_grain(number_, number, &one.c));
    }
    void submit(std::span<const order> orders) {
        std::vector<detail::c_grain> grains;
        std::vector<d_grain_order> rows;
        grains.reserve(orders.size());
        rows.reserve(orders.size());
        for (const order &o : orders) rows.push_back({o.number, grains.emplace_back(o.what).c});
        std::size_t taken = 0, refused = 0;
        const int code = d_gexec_many(number_, rows.data(), rows.size(), &taken, &refused);
        if (code != NO_ERROR) throw error(code, d_errortext(), taken, refused);
    }

    // The next result, in the order in which grains finished; false: none will come any more.
    bool wait(result &to, int batch = 1) { return take(D_BLOCK, to, batch); }
    // The same without waiting. false: nothing yet, or nothing any more.
    bool poll(result &to) { return take(D_NO_BLOCK, to, 1); }
    result_range results(int batch = 64) { return result_range(this, batch); }

    // The grain will not run again, and no result of it comes that was not handed out.
    void kill(int number) { check(d_gkill(number_, number)); }
    // Terminates the session; results stay, and a rerun replays them.
    void close() {
        check(d_close_ses(number_));
        open_ = false;
    }
    // From here on the end of its scope does not close it.
    void leave() noexcept { open_ = false; }

private:
    explicit session(int number) : number_(number) {}
    bool take(int block, result &to, int batch) {
        if (next_ == ready_.size()) {
            next_ = 0;
            ready_.clear();
            std::vector<d_result> rows(static_cast<std::size_t>(std::clamp(batch, 1, 1024)));
            int count = 0;
            const int code = d_gwait_many(block, number_, static_cast<int>(rows.size()), rows.data(), &count);
            if (code == D_E_NOTHING_LEFT || (block == D_NO_BLOCK && code == D_E_NOTHING_YET)) return false;
            if (code != NO_ERROR) {
                const error failed(code, d_errortext());  // before another call forgets the text
                if (code == D_E_REPLAY_END && settled()) return false;
                throw failed;
            }
            for (const d_result &row : std::span(rows).first(static_cast<std::size_t>(count)))
                ready_.push_back(detail::result_of(number_, row));
        }
        to = std::move(ready_[next_++]);
        return true;
    }

    // In the replay of a closed session: no grain is left that it would go on with if it were reopened.
    bool settled() const {
        const answer known = query(D_Q_SESSIONS, -1, -1, detail::login_name().c_str());
        for (const d_session_row &row : known.sessions())
            if (row.session == number_) return row.ready == 0 && row.running == 0;
        return false;
    }

    int number_;
    bool open_ = true;
    int unwinding_ = std::uncaught_exceptions();
    std::vector<result> ready_ = {};
    std::size_t next_ = 0;
};

inline void result_range::iterator::next() {
    if (!range_->session_->wait(now_, range_->batch_)) range_ = nullptr;
}

}  // namespace dcs

#endif
