// Submitting many grains.
#include <algorithm>
#include <optional>

#include "base/limits.h"
#include "base/sized.h"
#include "client/local_files.h"
#include "wire/checks.h"

namespace dcs::client {
namespace {

struct Prepared {
    wire::GrainOrder order;
    LocalFiles files;
    std::uint64_t bytes = 0;  // what it counts for against limits::batch_bytes
};

// What goes into one request: as a whole it happens or does not.
struct Part {
    wire::GexecMany request;
    LocalFiles files;
    std::uint64_t bytes = 0;

    bool takes(const Prepared &one) const {
        if (request.orders.empty()) return true;
        return request.orders.size() < limits::batch_grains && bytes + one.bytes <= limits::batch_bytes;
    }
    void add(Prepared one) {
        request.orders.push_back(std::move(one.order));
        files.add(std::move(one.files));
        bytes += one.bytes;
    }
};

Status prepare(const d_grain_order &order, Prepared &one) {
    one.order.grain = order.grain_num;
    const auto grain = known_grain(&order.grain);
    if (!grain) return grain.status();
    if (Status s = fill_spec(*grain, one.order.spec); !s) return s;
    if (Status s = one.files.take(*grain, one.order.spec); !s) return s;
    one.bytes = bytes_of(one.order.spec) + one.files.copied_bytes();
    return Status::ok();
}

class Submission {
public:
    Submission(Pool &pool, int session, const d_grain_order *orders, std::size_t count, std::size_t &taken,
               std::size_t &refused)
        : pool_(pool), session_(session), orders_(orders), count_(count), taken_(taken), refused_(refused) {}

    Status run() {
        if (Status s = check_numbers(); !s) return s;
        while (taken_ < count_)
            if (Status s = submit_part(); !s) return s;
        return Status::ok();
    }

private:
    Status about(std::size_t index, Status s) {
        refused_ = index;
        s.text = "grain " + std::to_string(order(index).grain_num) + ": " + s.text;
        return s;
    }
    Status check_numbers();
    Status submit_part();
    Status gather(Part &part);
    Status send(Part &part);

    // In the program's array, in which they lie as far apart as the first is long.
    const d_grain_order &order(std::size_t i) const { return *at_stride(orders_, orders_->struct_size, i); }

    Pool &pool_;
    const int session_;
    const d_grain_order *const orders_;
    const std::size_t count_;
    std::size_t prepared_ = 0;
    std::size_t &taken_, &refused_;
    std::optional<Prepared> waits_;  // did not fit into the part before
};

Status Submission::check_numbers() {
    if (Status s = check_session(session_); !s) return s;
    if (count_ > PTRDIFF_MAX / sizeof(d_grain_order))
        return fail(Code::invalid, "count is " + std::to_string(count_) + ": no array is so long");
    if (count_ > 0 && !orders_) return fail(Code::invalid, "orders is NULL, but count is " + std::to_string(count_));
    if (count_ > 0 && (!sound_size<d_grain_order>(orders_->struct_size) ||
                       orders_->struct_size <= offsetof(d_grain_order, grain) + sizeof(size_t)))
        return bad_struct_size("orders[0]", orders_->struct_size);
    std::vector<std::pair<int, std::size_t>> numbers(count_);
    for (std::size_t i = 0; i < count_; ++i) {
        numbers[i] = {order(i).grain_num, i};
        if (Status s = check_grain(session_, order(i).grain_num); !s) return about(i, s);
    }
    std::sort(numbers.begin(), numbers.end());
    const auto same = [](const auto &a, const auto &b) { return a.first == b.first; };
    const auto twice = std::adjacent_find(numbers.begin(), numbers.end(), same);
    if (twice == numbers.end()) return Status::ok();
    return about((twice + 1)->second,
                 fail(Code::invalid, "it occurs twice in orders, at " + std::to_string(twice->second) + " and " +
                                         std::to_string((twice + 1)->second)));
}

Status Submission::gather(Part &part) {
    part.request.session = session_;
    pool_.put_changes(part.request);
    while (waits_ || prepared_ < count_) {
        if (!waits_) {
            if (Status s = prepare(order(prepared_), waits_.emplace()); !s) return about(prepared_, s);
            ++prepared_;
        }
        if (!part.takes(*waits_)) break;
        part.add(std::move(*waits_));
        waits_.reset();
    }
    return Status::ok();
}

// The answer says which grain a refusal is about.
Status Submission::send(Part &part) {
    std::int32_t refused = -1;
    How how{.refused_grain = &refused};
    const wire::AnyMessage message(std::move(part.request));
    const Status s = part.files.submit(pool_, message, how);
    const std::size_t end = taken_ + std::get<wire::GexecMany>(message).orders.size();
    DCS_REQUIRE(taken_ < end && end <= count_, "a part has grains, and no more than there are");
    if (s) {
        taken_ = end;
        part.files.submitted();
    } else if (refused >= 0) {
        for (std::size_t i = taken_; i < end; ++i)
            if (order(i).grain_num == refused) refused_ = i;
    }
    return s;
}

Status Submission::submit_part() {
    Part part;
    if (Status s = gather(part); !s) return s;
    return send(part);
}

}  // namespace
}  // namespace dcs::client

using namespace dcs;
using namespace dcs::client;

extern "C" int d_pool_gexec_many(struct d_pool *pool, int session_num, const struct d_grain_order *orders, size_t count,
                                 size_t *taken, size_t *refused) {
    std::size_t so_far = 0, about = count;
    const int error =
        c_call(pool, [&](Pool &p) { return Submission(p, session_num, orders, count, so_far, about).run(); });
    if (taken) *taken = so_far;
    if (refused) *refused = about;
    return error;
}
