#pragma once
// Of each thread one T, made when the thread first asks for it and destroyed when the thread ends. The main thread's
// stays when the process ends by exit(): handlers of atexit() and destructors of static objects may still call the
// library, after thread_local objects have gone.
#include <pthread.h>

#include "base/no_cancel.h"

namespace dcs {

template <class T> class PerThread {
public:
    static T &mine() {
        if (own_ == nullptr) {
            own_ = new T;
            ::pthread_setspecific(key(), own_);  // where it fails, the object stays
        }
        return *own_;
    }

private:
    static pthread_key_t key() {
        static const pthread_key_t made = [] {
            pthread_key_t one{};
            ::pthread_key_create(&one, destroy);
            return one;
        }();
        return made;
    }
    static void destroy(void *object) {
        const NoCancel whole;
        own_ = nullptr;  // for a destructor that runs later, and makes another
        delete static_cast<T *>(object);
    }
    static inline thread_local T *own_ = nullptr;
};

}  // namespace dcs
