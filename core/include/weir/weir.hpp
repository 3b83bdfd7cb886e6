/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEIR_HPP
#define WEIR_WEIR_HPP

/* <weir/weir.h>, <weir/notice.h>, <weir/take.h> and <weir/thread.h> for C++17,
 * header only: reactors that serve handlers as <weir/plugin.hpp> has them, or
 * lambdas, and jobs that hosts take. What is not here is
 * called as C, with the `get` of what is.
 *
 * Functions that can fail throw weir::error. Handlers may throw; an exception
 * that leaves another callback has nowhere to go and calls std::terminate. */

#include <functional>
#include <memory>
#include <weir/notice.h>
#include <weir/plugin.hpp>
#include <weir/take.h>
#include <weir/thread.h>

namespace weir
{

/* --- reactors ------------------------------------------------------------ */

/* A msgpack body of JSON. */
inline std::string body_from_json(std::string_view json)
{
    weir_error err{};
    weir_slice body{};
    int rc = weir_body_from_json(json.data(), json.size(), &body, &err);

    if (rc < 0)
        throw error(rc, err.text);
    std::unique_ptr<const std::uint8_t, void (*)(const std::uint8_t *)> owner(
        body.ptr, [](const std::uint8_t *ptr) {
            weir_body_free({ptr, 0});
        });
    return std::string(view(body));
}

/* As struct weir_options. */
struct options {
    std::string redis_url;
    struct ev_loop *loop = nullptr; /* of a reactor; a thread has its own */
    std::string name;
    std::function<void(weir_level, std::string_view)> log;
    weir_level log_level = WEIR_LEVEL_INFO;
    std::function<void(int code, std::string_view)> on_connection;
    std::int64_t request_timeout_ms = 0;
    std::int64_t block_warn_ms = 0;
    std::uint32_t threads = 0;
};

namespace detail
{

inline void check(int rc, const weir_error &err)
{
    if (rc < 0)
        throw error(rc, err.text[0] != '\0' ? err.text : weir_error_text(rc));
}

/* What the C library points to while a reactor lives. */
struct state {
    options with;
    std::vector<std::shared_ptr<void>> handlers;

    explicit state(options from) : with(std::move(from)) {}

    static void log(weir_level level, const char *line, void *arg) noexcept
    {
        static_cast<state *>(arg)->with.log(level, line);
    }
    static void connection(int code, const char *line, void *arg) noexcept
    {
        static_cast<state *>(arg)->with.on_connection(code, line);
    }

    weir_options for_c()
    {
        weir_options to{};

        to.loop = with.loop;
        to.redis_url = with.redis_url.c_str();
        to.name = with.name.empty() ? nullptr : with.name.c_str();
        to.log = with.log ? log : nullptr;
        to.log_arg = this;
        to.log_level = with.log_level;
        to.request_timeout_ms = with.request_timeout_ms;
        to.on_connection = with.on_connection ? connection : nullptr;
        to.on_connection_arg = this;
        to.block_warn_ms = with.block_warn_ms;
        to.threads = with.threads;
        return to;
    }

    template <class H>
    void serve(weir_reactor *reactor, text topic, H from,
               const std::vector<std::string> &settings)
    {
        auto handler = std::make_shared<H>(std::move(from));
        weir_topic_options to{};
        weir_error err{};
        std::size_t at = 0;

        if (settings.size() >= WEIR_MAX_OPTIONS)
            throw error(WEIR_EINVAL, "too many options of a topic");
        for (const std::string &setting : settings)
            to.options[at++] = setting.c_str();
        if constexpr (is_batch<H>)
            to.run_batch = run_batch<H>;
        else
            to.run = run<H>;
        to.self = handler.get();
        to.blocking = blocks<H>::value;
        handlers.push_back(handler); /* before it can be called */
        check(weir_reactor_serve(reactor, topic.c_str(), &to, &err), err);
    }
};

/* A function on its way through C, for the one call that it gets. */
template <class F> struct once {
    F fn;

    template <class... Args> static void call(void *arg, Args... args) noexcept
    {
        std::unique_ptr<once> owner(static_cast<once *>(arg));

        owner->fn(args...);
    }
    static void told(int code, void *arg) noexcept { call(arg, code); }
};

/* Hand it to `give(arg)`, which tells whether C has it. */
template <class F, class Give> void hand(F fn, Give give)
{
    weir_error err{};
    std::unique_ptr<once<F>> owner(new once<F>{std::move(fn)});

    check(give(owner.get(), &err), err);
    (void)owner.release();
}

} // namespace detail

/* As struct weir_new_job: everything is copied. What is empty is not given. */
struct new_job {
    std::string body; /* msgpack: body_from_json */
    std::string id;
    std::int64_t delay_ms = 0;
    std::int64_t at_ms = 0;
    std::string retry;
    std::int64_t ttl_ms = 0;
    std::string url;
    std::string group;
    std::string durability;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string unique;
    std::string unique_for;
    std::string unique_else;
    std::string key;
    std::string priority;
    std::string max_wait;
};

namespace detail
{

/* Borrows from the job. */
struct borrowed_job {
    std::vector<weir_header> headers;
    weir_new_job job{};

    explicit borrowed_job(const new_job &from)
    {
        for (const auto &[name, value] : from.headers)
            headers.push_back({slice(name), slice(value)});
        job.id = text(from.id);
        job.body = slice(from.body);
        job.delay_ms = from.delay_ms;
        job.at_ms = from.at_ms;
        job.retry = text(from.retry);
        job.ttl_ms = from.ttl_ms;
        job.url = text(from.url);
        job.group = text(from.group);
        job.durability = text(from.durability);
        job.headers = headers.data();
        job.header_count = headers.size();
        job.unique = text(from.unique);
        job.unique_for = text(from.unique_for);
        job.unique_else = text(from.unique_else);
        job.key = text(from.key);
        job.priority = text(from.priority);
        job.max_wait = text(from.max_wait);
    }

    static const char *text(const std::string &from)
    {
        return from.empty() ? nullptr : from.c_str();
    }
};

} // namespace detail

/* A job that was taken. Where nobody settled it, its destructor gives it back.
 * To be destroyed before the reactor. */
class take
{
  public:
    explicit take(weir_take *from) : it(from) {}
    /* nullptr: it was settled, or moved from. */
    weir_take *get() const { return it.get(); }

    /* Its job is gone: settled it is WEIR_ENOTFOUND. */
    bool is_lost() const { return weir_take_job(get()) == nullptr; }
    weir::job job() const { return weir::job(weir_take_job(get())); }

    /* fn(code) hears what became of it, as weir_take_settled_fn. */
    template <class F> void settle(const verdict &with, F fn)
    {
        detail::hand(std::move(fn), [&](void *arg, weir_error *) {
            return give(with, detail::once<F>::told, arg);
        });
        (void)it.release();
    }
    void settle(const verdict &with)
    {
        detail::check(give(with, nullptr, nullptr), {});
        (void)it.release();
    }

    std::string token() const
    {
        char text[WEIR_TAKE_TOKEN] = "";

        detail::check(weir_take_token(get(), text), {});
        return text;
    }
    void let_go()
    {
        detail::check(weir_take_let_go(get()), {});
        (void)it.release();
    }

  private:
    struct returned {
        void operator()(weir_take *left) const
        {
            (void)!weir_take_give_back(left, nullptr, nullptr);
        }
    };

    int give(const verdict &with, weir_take_settled_fn fn, void *arg) const
    {
        const weir_settlement how{with.what(), with.delay_ms(),
                                  with.why().c_str(), fn, arg};

        return weir_take_settle(get(), &how);
    }

    std::unique_ptr<weir_take, returned> it;
};

/* A reactor on the caller's loop: <weir/weir.h>. To be destroyed outside of its
 * callbacks, which get WEIR_ECANCELED then. */
class reactor
{
  public:
    explicit reactor(options with)
        : state(std::make_unique<detail::state>(std::move(with)))
    {
        weir_options to = state->for_c();
        weir_reactor *opened = nullptr;
        weir_error err{};

        detail::check(weir_reactor_open(&to, &opened, &err), err);
        it.reset(opened);
    }
    reactor(reactor &&) = default;
    weir_reactor *get() const { return it.get(); }

    /* `settings` are the topic's options, "kind=bounded". */
    template <class H>
    void serve(text topic, H handler,
               const std::vector<std::string> &settings = {})
    {
        state->serve(get(), topic, std::move(handler), settings);
    }

    /* fn(code, id) hears what became of it, as weir_added_fn. */
    template <class F> void add(text topic, const new_job &job, F fn)
    {
        detail::borrowed_job with(job);

        detail::hand(std::move(fn), [&](void *arg, weir_error *err) {
            return weir_reactor_add(
                get(), topic.c_str(), &with.job,
                [](int code, const char *id, void *to) {
                    detail::once<F>::call(to, code, id);
                },
                arg, err);
        });
    }
    void add(text topic, const new_job &job)
    {
        detail::borrowed_job with(job);
        weir_error err{};

        detail::check(weir_reactor_add(get(), topic.c_str(), &with.job, nullptr,
                                       nullptr, &err),
                      err);
    }

    /* fn(code, takes), as weir_taken_fn; the takes are a vector of weir::take.
     * A take that is lost says so itself. */
    template <class F>
    void take(text topic, std::size_t limit, std::int64_t wait_ms, F fn,
              const std::vector<std::string> &settings = {})
    {
        std::vector<const char *> options;

        for (const std::string &setting : settings)
            options.push_back(setting.c_str());
        options.push_back(nullptr);
        detail::hand(std::move(fn), [&](void *arg, weir_error *err) {
            weir_take_options with{};

            with.limit = limit;
            with.wait_ms = wait_ms;
            with.options = options.data();
            with.arg = arg;
            with.fn = [](int code, weir_take *const *takes, std::size_t count,
                         void *to) noexcept {
                std::unique_ptr<detail::once<F>> owner(
                    static_cast<detail::once<F> *>(to));
                std::vector<weir::take> taken;

                for (std::size_t i = 0; i < count; i++)
                    taken.emplace_back(takes[i]);
                owner->fn(code, std::move(taken));
            };
            return weir_reactor_take(get(), topic.c_str(), &with, err);
        });
    }

    /* fn(code), once: <weir/notice.h>. */
    template <class F> void when_room(text topic, F fn)
    {
        detail::hand(std::move(fn), [&](void *arg, weir_error *) {
            return weir_reactor_when_room(get(), topic.c_str(),
                                          detail::once<F>::told, arg);
        });
    }
    void count_added() { detail::check(weir_reactor_count_added(get()), {}); }
    template <class F> void when_added(F fn)
    {
        detail::hand(std::move(fn), [&](void *arg, weir_error *) {
            return weir_reactor_when_added(get(), detail::once<F>::told, arg);
        });
    }
    template <class F> void when_settled(F fn)
    {
        detail::hand(std::move(fn), [&](void *arg, weir_error *) {
            return weir_reactor_when_settled(get(), detail::once<F>::told, arg);
        });
    }

    /* fn() once everything is settled; a second call replaces it. */
    void stop(std::function<void()> fn)
    {
        stopped = std::make_unique<std::function<void()>>(std::move(fn));
        weir_reactor_stop(
            get(),
            [](void *arg) { (*static_cast<std::function<void()> *>(arg))(); },
            stopped.get());
    }

    /* From any thread: fn(code) on the loop's. */
    template <class F> void call(F fn)
    {
        detail::hand(std::move(fn), [&](void *arg, weir_error *) {
            return weir_reactor_call(
                get(),
                [](int code, weir_reactor *, void *to) {
                    detail::once<F>::call(to, code);
                },
                arg);
        });
    }

  private:
    struct freed {
        void operator()(weir_reactor *opened) const
        {
            weir_reactor_free(opened);
        }
    };

    /* The reactor goes first. */
    std::unique_ptr<detail::state> state;
    std::unique_ptr<std::function<void()>> stopped;
    std::unique_ptr<weir_reactor, freed> it;
};

/* A reactor on a thread of its own: <weir/thread.h>, which says on which of the
 * two threads what runs. To be destroyed outside of its callbacks. */
class thread
{
  public:
    explicit thread(options with)
        : state(std::make_unique<detail::state>(std::move(with)))
    {
        weir_options to = state->for_c();
        weir_thread *opened = nullptr;
        weir_error err{};

        detail::check(weir_thread_open(&to, &opened, &err), err);
        it.reset(opened);
    }
    thread(thread &&) = default;
    weir_thread *get() const { return it.get(); }

    /* Before `start`; as of reactors. */
    template <class H>
    void serve(text topic, H handler,
               const std::vector<std::string> &settings = {})
    {
        state->serve(weir_thread_reactor(get()), topic, std::move(handler),
                     settings);
    }

    void start()
    {
        weir_error err{};

        detail::check(weir_thread_start(get(), &err), err);
    }

    /* From any thread: fn(code, id) on the host's. */
    template <class F> void add(text topic, const new_job &job, F fn)
    {
        detail::borrowed_job with(job);

        detail::hand(std::move(fn), [&](void *arg, weir_error *err) {
            weir_new_jobs jobs{
                topic.c_str(), &with.job, 1,
                [](const weir_added *added, std::size_t, void *to) {
                    detail::once<F>::call(to, added->code, added->id);
                },
                arg};

            return weir_thread_submit(get(), &jobs, err);
        });
    }

    /* From any thread: fn() on the host's. */
    template <class F> void tell(F fn)
    {
        detail::hand(std::move(fn), [&](void *arg, weir_error *) {
            return weir_thread_tell(
                get(), [](void *to) { detail::once<F>::call(to); }, arg);
        });
    }

    /* fn() on the host's thread once everything is settled; once only. */
    void stop(std::function<void()> fn)
    {
        weir_error none{};

        stopped = std::make_unique<std::function<void()>>(std::move(fn));
        detail::check(weir_thread_stop(
                          get(),
                          [](void *arg) {
                              (*static_cast<std::function<void()> *>(arg))();
                          },
                          stopped.get()),
                      none);
    }

    int fd() const { return weir_thread_fd(get()); }
    void dispatch() const { weir_thread_dispatch(get()); }
    /* False: there was nothing to run. */
    bool wait(std::int64_t ms) const
    {
        return weir_thread_wait(get(), ms) == WEIR_OK;
    }

  private:
    struct freed {
        void operator()(weir_thread *opened) const { weir_thread_free(opened); }
    };

    /* The thread goes first. */
    std::unique_ptr<detail::state> state;
    std::unique_ptr<std::function<void()>> stopped;
    std::unique_ptr<weir_thread, freed> it;
};

} // namespace weir
#endif
