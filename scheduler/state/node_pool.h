#pragma once
// An allocator for the nodes of one container: a node takes no more than its bytes, and all of them are given back
// together, when the container ends. malloc adds 16 bytes to each node of a million, and leaves holes between them. A
// container that has become large takes larger pieces.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/large_work.h"
#include "base/require.h"

namespace dcs::core {

// Pieces of one size, of which those that were given back are taken first.
class NodePool {
public:
    void *take(std::size_t bytes) {
        DCS_REQUIRE(bytes >= sizeof(Free) && (size_ == 0 || bytes == size_), "the nodes of a container are alike");
        size_ = bytes;
        if (free_) return std::exchange(free_, free_->next);
        if (left_ == 0) { next_ = more(); }
        --left_;
        return std::exchange(next_, next_ + size_);
    }
    void give(void *piece) { free_ = new (piece) Free{free_}; }

private:
    struct Free {
        Free *next;
    };
    std::byte *more() {
        if (chunks_.size() < small_chunks) {
            left_ = count_ = std::min<std::size_t>(2 * count_, 256);
            return chunks_.emplace_back(std::make_unique<std::byte[]>(left_ * size_)).get();
        }
        left_ = LargeMemory::page / size_;
        return reinterpret_cast<std::byte *>(large_.emplace_back(left_ * size_).mapped(0, left_ * size_).data());
    }
    static constexpr std::size_t small_chunks = 256;  // with these a large piece that is hardly used adds little
    std::vector<std::unique_ptr<std::byte[]>> chunks_;
    std::vector<LargeMemory> large_;
    std::byte *next_ = nullptr;                    // the first untaken piece
    std::size_t size_ = 0, count_ = 2, left_ = 0;  // of a piece; pieces of the last small chunk; untaken ones
    Free *free_ = nullptr;
};

// Containers that are copied do not share a pool, so they may be used by different threads.
template <class T> class PooledNodes {
public:
    using value_type = T;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    PooledNodes() : pool_(std::make_shared<NodePool>()) {}
    PooledNodes(const PooledNodes &) =
        default;  // and no move: what was moved from keeps its pool, as containers demand
    PooledNodes &operator=(const PooledNodes &) = default;
    template <class U> PooledNodes(const PooledNodes<U> &other) : pool_(other.pool_) {}
    PooledNodes select_on_container_copy_construction() const { return {}; }
    T *allocate(std::size_t count) {
        static_assert(alignof(T) <= alignof(std::max_align_t));
        DCS_REQUIRE(count == 1, "nodes are taken singly");
        return static_cast<T *>(pool_->take(sizeof(T)));
    }
    void deallocate(T *node, std::size_t) { pool_->give(node); }
    bool operator==(const PooledNodes &) const = default;

private:
    template <class U> friend class PooledNodes;
    std::shared_ptr<NodePool> pool_;
};

}  // namespace dcs::core
