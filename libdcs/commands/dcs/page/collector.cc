#include "collector.h"

#include <algorithm>
#include <chrono>
#include <fcntl.h>

#include "base/clock.h"
#include "base/files.h"
#include "metrics.h"
#include "panels.h"

namespace dcs::commands::page {
namespace {

constexpr double idle_interval_s = 10;
constexpr std::int64_t kept_s = 2;
constexpr std::size_t most_kept_bytes = 1 << 20;

std::vector<Panel> draw(const Snapshot &s, const Journal &journal, const Series &series, std::int64_t now_ms) {
    return {{"head", "Pool", head_panel(s), 0},
            {"problems", "Problems", problems_panel(s), 0},
            {"hosts", "Hosts", hosts_panel(s), 0},
            {"sessions", "Sessions", sessions_panel(s, journal), 0},
            {"time", "What ran in the last hour", time_panel(s, journal, now_ms), 0},
            {"moves", "Grains that left a host", moves_panel(journal), 0},
            {"load", "Throughput and queue", load_panel(series), 0},
            {"events", "Events", events_panel(journal), 0}};
}

}  // namespace

Collector::Collector(std::string directory, std::string file, double interval_s, double certificate_end_s,
                     Publish publish)
    : directory_(std::move(directory)),
      file_(std::move(file)),
      run_(std::to_string(wall_clock_ms())),
      interval_s_(interval_s),
      certificate_end_s_(certificate_end_s),
      started_s_(static_cast<double>(wall_clock_ms()) / 1000),
      publish_(std::move(publish)),
      journal_(wall_clock_ms()) {
    const auto kept = file_.empty() ? Result<std::string>("") : dcs::read_file(AT_FDCWD, file_, most_kept_bytes);
    if (kept) series_.restore(*kept, wall_clock_ms());
}

void Collector::start() {
    std::thread([this] { run(); }).detach();
}

bool Collector::ask(const std::string &target, Done done) {
    const std::lock_guard lock(mutex_);
    if (questions_.size() >= most_questions) return false;
    questions_.emplace_back(target, std::move(done));
    news_.notify_one();
    return true;
}

void Collector::set_watchers(std::size_t n) {
    const bool first = watchers_.exchange(n) == 0 && n > 0;
    if (!first) return;
    const std::lock_guard lock(mutex_);
    hurry_ = true;
    news_.notify_one();
}

Duration Collector::pause_after(double took_s) const {
    const double wanted = watchers_ > 0 ? interval_s_ : std::max(interval_s_, idle_interval_s);
    return seconds_of(pause_after_look_s(took_s, wanted));
}

void Collector::look() {
    snapshot_ = take_snapshot(directory_, std::move(snapshot_));
    const std::int64_t now_ms = wall_clock_ms();
    if (snapshot_.reachable) {
        counters_.take(snapshot_.hosts);
        journal_.follow(snapshot_.sessions, now_ms);
        const Totals t = totals_of(snapshot_.hosts);
        const bool news = series_.take(now_ms, t.finished + t.failed, snapshot_.system.ready, snapshot_.system.running);
        // On a full disk the figures end with the process.
        if (news && !file_.empty()) (void)replace_file(AT_FDCWD, file_, series_.text());
    }
    Published next{.run = run_, .number = last_.number + 1, .panels = draw(snapshot_, journal_, series_, now_ms)};
    for (std::size_t i = 0; i < next.panels.size(); ++i) {
        const bool same = i < last_.panels.size() && last_.panels[i].html == next.panels[i].html;
        next.panels[i].changed = same ? last_.panels[i].changed : next.number;
    }
    next.update = next.update_since(last_.id());
    next.first_page = text_of(first_page_of(next));
    Metrics metrics =
        metrics_of(snapshot_, counters_, journal_, {next.number, watchers_, started_s_, certificate_end_s_});
    next.metrics = text_of(std::move(metrics.text));
    next.open_metrics = text_of(std::move(metrics.open));
    last_ = next;
    publish_(std::make_shared<const Published>(std::move(next)));
}

Detail Collector::detail_of(const std::string &target) {
    const Instant now = boot_clock();
    if (const auto it = kept_.find(target); it != kept_.end() && it->second.until > now) return it->second.detail;
    Detail detail = make_detail(target, snapshot_, journal_);
    if (kept_.size() >= most_kept) kept_.clear();
    kept_[target] = {detail, now + seconds(kept_s)};
    return detail;
}

void Collector::answer_questions() {
    for (;;) {
        std::pair<std::string, Done> question;
        {
            const std::lock_guard lock(mutex_);
            if (questions_.empty()) return;
            question = std::move(questions_.front());
            questions_.pop_front();
        }
        question.second(detail_of(question.first));
    }
}

void Collector::run() {
    for (;;) {
        const Instant begun = boot_clock();
        look();
        const Instant ended = boot_clock(), quick = ended + seconds_of(interval_s_);
        // One that does not answer has no work with the question, scheduler or backup.
        const double took_s = snapshot_.reachable ? (ended - begun).seconds() - snapshot_.backup_s : 0;
        for (;;) {
            answer_questions();
            std::unique_lock lock(mutex_);
            if (hurry_ && boot_clock() < quick) hurry_ = false;  // what there is is new enough
            const Instant due = ended + pause_after(took_s);
            if (hurry_ || boot_clock() >= due) break;
            if (!questions_.empty()) continue;
            const Duration left = std::min(due - boot_clock(), seconds(1));
            news_.wait_for(lock, std::chrono::nanoseconds(left.ns));
            if (scheduler_is_down(directory_) != snapshot_.down) break;
        }
        const std::lock_guard lock(mutex_);
        hurry_ = false;
    }
}

}  // namespace dcs::commands::page
