#pragma once
// Of each thread one T, made when the thread first asks for it and destroyed when the thread ends. The main thread's
// stays when the process ends by exit(): handlers of atexit() and destructors of static objects may still call the
// library, after thread_local objects have gone. A shared library that uses it is never unloaded (-z nodelete), as a
// thread may end later.
#include <pthread.h>

#include "base/no_cancel.h"

namespace dcs {

template <class T> class PerThread {
public:
    static T &mine() {
        if (own_ == nullptr) {
            own_ = new T;
            if (key_.error == 0) ::pthread_setspecific(key_.key, own_);  // else it stays
        }
        return *own_;
    }

private:
    struct Key {
        pthread_key_t key{};
        int error = ::pthread_key_create(&key, destroy);
    };
    static void destroy(void *object) {
        const NoCancel whole;
        own_ = nullptr;  // for a destructor that runs later, and makes another
        delete static_cast<T *>(object);
    }
    static inline thread_local T *own_ = nullptr;
    static inline const Key key_;  // made at load: in a child of a fork no other thread is about to make it
};

}  // namespace dcs
