/* SPDX-License-Identifier: MIT */
#ifndef WEIR_PLUGIN_HPP
#define WEIR_PLUGIN_HPP

/* <weir/plugin.h> for C++17: handlers as classes. Header only, with nothing of
 * weir's to be linked. What is not here is called as C, with the `get` of what
 * is.
 *
 * No exception leaves a handler: it becomes a retry with what() as its reason,
 * a weir::failure a job that is dead at once. If this worker lacks memory,
 * descriptors or threads (std::bad_alloc, a std::system_error of EMFILE, ENFILE,
 * EAGAIN or ENOMEM, a weir::error of WEIR_ENOMEM), the job comes back after 1 s
 * and loses no attempt. Views are borrowed as the C
 * headers say: what is read of a job until its run is over. */

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>
#include <weir/plugin.h>

namespace weir
{

/* --- texts and errors ---------------------------------------------------- */

inline std::string_view view(weir_slice bytes)
{
    return {reinterpret_cast<const char *>(bytes.ptr), bytes.len};
}

inline weir_slice slice(std::string_view text)
{
    return {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()};
}

/* A parameter: a text that ends in a NUL, borrowed for the call. */
class text
{
  public:
    text(const char *from) : ptr(from) {}
    text(const std::string &from) : ptr(from.c_str()) {}
    const char *c_str() const { return ptr; }

  private:
    const char *ptr;
};

/* What a call was refused with. */
class error : public std::runtime_error
{
  public:
    error(int code, const std::string &what)
        : std::runtime_error(what), number(code)
    {
    }
    /* WEIR_E... */
    int code() const { return number; }

  private:
    int number;
};

/* A handler throws it where no retry can help. */
class failure : public std::runtime_error
{
    using std::runtime_error::runtime_error;
};

/* --- verdicts ------------------------------------------------------------ */

/* What a handler answers: weir::done() and so on. A reason is cut at 200 bytes.
 */
class [[nodiscard]] verdict
{
  public:
    verdict(weir_verdict what, std::int64_t delay_ms, std::string why)
        : kind(what), ms(delay_ms), reason(std::move(why))
    {
    }
    weir_verdict what() const { return kind; }
    std::int64_t delay_ms() const { return ms; }
    const std::string &why() const { return reason; }

    /* As C handlers return it. */
    weir_verdict give(weir_job *job) const
    {
        switch (kind) {
        case WEIR_RETRY:
            return weir_retry(job, reason.c_str());
        case WEIR_RETRY_AFTER:
            return weir_retry_after(job, ms, reason.c_str());
        case WEIR_SNOOZE:
            return weir_snooze(job, ms);
        case WEIR_FAIL:
            return weir_fail(job, reason.c_str());
        default:
            return kind;
        }
    }

  private:
    weir_verdict kind;
    std::int64_t ms;
    std::string reason;
};

inline verdict done()
{
    return {WEIR_DONE, 0, {}};
}

/* The handle of the job completes it. */
inline verdict pending()
{
    return {WEIR_PENDING, 0, {}};
}

inline verdict retry(std::string why)
{
    return {WEIR_RETRY, 0, std::move(why)};
}

inline verdict retry_after(std::int64_t ms, std::string why)
{
    return {WEIR_RETRY_AFTER, ms, std::move(why)};
}

inline verdict snooze(std::int64_t ms)
{
    return {WEIR_SNOOZE, ms, {}};
}

inline verdict fail(std::string why)
{
    return {WEIR_FAIL, 0, std::move(why)};
}

/* --- jobs ---------------------------------------------------------------- */

/* Who finishes a pending run, once, on any thread. Where nobody did, its
 * destructor has the job retried. */
class handle
{
  public:
    explicit handle(weir_handle from) : it(from) {}
    handle(handle &&from) noexcept : it(from.it) { from.it.ticket = 0; }
    handle &operator=(handle &&from) noexcept
    {
        if (this != &from) {
            drop();
            it = std::exchange(from.it, weir_handle{nullptr, nullptr, 0});
        }
        return *this;
    }
    ~handle() { drop(); }

    /* The handle is empty then. WEIR_ENOMEM: it is not, call again. */
    void complete(const verdict &with)
    {
        int rc = it.ticket == 0
                     ? WEIR_EINVAL
                     : weir_complete(it, with.what(), with.delay_ms(),
                                     with.why().c_str());

        if (rc != WEIR_ENOMEM)
            it.ticket = 0;
        if (rc < 0 && rc != WEIR_ECANCELED) /* the reactor is gone */
            throw error(rc, "weir: a handle cannot complete its job");
    }

    /* False: it was moved from, or is complete. */
    explicit operator bool() const { return it.ticket != 0; }

  private:
    void drop() noexcept
    {
        if (it.ticket != 0)
            (void)weir_complete(it, WEIR_RETRY, 0, "the handle was dropped");
    }

    weir_handle it;
};

/* A job as its handler sees it; a copy is the same job. */
class job
{
  public:
    explicit job(weir_job *from) : it(from) {}
    weir_job *get() const { return it; }

    std::string_view id() const { return view(weir_job_id(it)); }
    std::string_view topic() const { return view(weir_job_topic(it)); }
    std::string_view group() const { return view(weir_job_group(it)); }
    std::string_view url() const { return view(weir_job_url(it)); }
    std::string_view body() const { return view(weir_job_body(it)); }
    weir_counters counters() const { return weir_job_counters(it); }
    std::uint64_t token() const { return weir_job_token(it); }

    /* Values of the body by their path; none: there is none of the type. */
    std::optional<std::int64_t> i64(text path) const
    {
        return read<std::int64_t>(weir_job_i64, path);
    }
    std::optional<std::uint64_t> u64(text path) const
    {
        return read<std::uint64_t>(weir_job_u64, path);
    }
    std::optional<double> f64(text path) const
    {
        return read<double>(weir_job_f64, path);
    }
    std::optional<bool> boolean(text path) const
    {
        return read<bool>(weir_job_bool, path);
    }
    std::optional<std::string_view> str(text path) const
    {
        auto found = read<weir_slice>(weir_job_str, path);

        return found ? std::optional(view(*found)) : std::nullopt;
    }

    /* The whole body. */
    std::string json() const
    {
        std::string line(weir_job_body_json(it, nullptr, 0), '\0');

        if (line.empty())
            throw std::bad_alloc();
        (void)weir_job_body_json(it, line.data(), line.size() + 1);
        return line;
    }

    /* Empty: it has none of this name. */
    std::string_view header(text name) const
    {
        return view(weir_job_header(it, name.c_str()));
    }
    std::vector<std::pair<std::string_view, std::string_view>> headers() const
    {
        weir_header found[WEIR_MAX_HEADERS];
        std::size_t count = weir_job_headers(it, found, WEIR_MAX_HEADERS);
        std::vector<std::pair<std::string_view, std::string_view>> all;

        for (std::size_t i = 0; i < count; i++)
            all.emplace_back(view(found[i].name), view(found[i].value));
        return all;
    }

    void log(weir_level level, text line) const
    {
        weir_job_log(it, level, line.c_str());
    }
    void count(text name, std::uint64_t by = 1) const
    {
        weir_job_count(it, name.c_str(), by);
    }
    bool canceled() const { return weir_job_canceled(it); }

    /* Take it before weir::pending() is returned. */
    weir::handle handle() const
    {
        weir_handle taken = weir_job_handle(it);

        if (taken.ticket == 0)
            throw std::bad_alloc();
        return weir::handle(taken);
    }

  private:
    template <class T>
    std::optional<T> read(bool (*fn)(const weir_job *, const char *, T *),
                          text path) const
    {
        T value;

        return fn(it, path.c_str(), &value) ? std::optional(value)
                                            : std::nullopt;
    }

    weir_job *it;
};

/* Jobs that are handled together; done, unless something else is answered. */
class batch
{
  public:
    batch(weir_job *const *jobs, std::size_t count, weir_verdict *verdicts)
        : first(jobs), length(count), answers(verdicts)
    {
    }
    std::size_t size() const { return length; }
    job operator[](std::size_t at) const { return job(first[at]); }
    void answer(std::size_t at, const verdict &with) const
    {
        answers[at] = with.give(first[at]);
    }

  private:
    weir_job *const *first;
    std::size_t length;
    weir_verdict *answers;
};

/* --- handlers ------------------------------------------------------------ */

/* A handler is a class with one of
 *
 *     weir::verdict run(weir::job &job);
 *     void run_batch(weir::batch &jobs);
 *
 * or, for a reactor, what can be called with one of the two. Members that it
 * may have:
 *
 *     static constexpr bool is_blocking = true;   as WEIR_PLUGIN_BLOCKING
 *     void flush();                               of plugins: as in C
 *     static constexpr weir_option options[] = {weir::option(...), ...};
 *     explicit Handler(const weir::opening &with);
 *
 * What is thrown out of a batch holds for all of its jobs. */

namespace detail
{

template <class, class, class = void> struct runs : std::false_type {
};
template <class H, class J>
struct runs<H, J,
            std::void_t<decltype(std::declval<H &>().run(std::declval<J &>()))>>
    : std::true_type {
};

template <class, class = void> struct runs_batch : std::false_type {
};
template <class H>
struct runs_batch<H, std::void_t<decltype(std::declval<H &>().run_batch(
                         std::declval<batch &>()))>> : std::true_type {
};

template <class, class = void> struct flushes : std::false_type {
};
template <class H>
struct flushes<H, std::void_t<decltype(std::declval<H &>().flush())>>
    : std::true_type {
};

template <class, class = void> struct has_options : std::false_type {
};
template <class H>
struct has_options<H, std::void_t<decltype(H::options)>> : std::true_type {
};

template <class H>
constexpr bool is_batch = runs_batch<H>::value ||
                          (!runs<H, job>::value &&
                           std::is_invocable_v<H &, batch &> &&
                           !std::is_invocable_v<H &, job &>);

template <class, class = void> struct blocks : std::false_type {
};
template <class H>
struct blocks<H, std::void_t<decltype(H::is_blocking)>>
    : std::bool_constant<H::is_blocking> {
};

/* The worker lacks something; the job is not to blame. */
inline weir_verdict put_off(weir_job *job, const char *what) noexcept
{
    weir_job_log(job, WEIR_LEVEL_WARN, what);
    return weir_snooze(job, 1000);
}

inline bool is_short(const std::error_code &code) noexcept
{
    return code == std::errc::too_many_files_open ||
           code == std::errc::too_many_files_open_in_system ||
           code == std::errc::resource_unavailable_try_again ||
           code == std::errc::not_enough_memory;
}

/* What `fn` returns; what it throws is a verdict, too, for `job`. */
template <class F> weir_verdict guard(weir_job *job, F fn) noexcept
{
    try {
        return fn();
    } catch (const failure &thrown) {
        return weir_fail(job, thrown.what());
    } catch (const std::bad_alloc &) {
        return put_off(job, "out of memory");
    } catch (const std::system_error &thrown) {
        return is_short(thrown.code()) ? put_off(job, thrown.what())
                                       : weir_retry(job, thrown.what());
    } catch (const error &thrown) {
        return thrown.code() == WEIR_ENOMEM ? put_off(job, thrown.what())
                                            : weir_retry(job, thrown.what());
    } catch (const std::exception &thrown) {
        return weir_retry(job, thrown.what());
    } catch (...) {
        return weir_retry(job, "an exception that is no std::exception");
    }
}

template <class H> weir_verdict run(void *self, weir_job *from) noexcept
{
    return guard(from, [&] {
        H &handler = *static_cast<H *>(self);
        job one(from);

        if constexpr (runs<H, job>::value)
            return handler.run(one).give(from);
        else
            return handler(one).give(from);
    });
}

template <class H>
weir_verdict run_batch(void *self, weir_job *const *jobs, std::size_t count,
                       weir_verdict *verdicts) noexcept
{
    return guard(jobs[0], [&] {
        H &handler = *static_cast<H *>(self);
        batch all(jobs, count, verdicts);

        if constexpr (runs_batch<H>::value)
            handler.run_batch(all);
        else
            handler(all);
        return WEIR_EACH;
    });
}

} // namespace detail

/* --- plugins ------------------------------------------------------------- */

/* A row of a handler's options; `fallback` NULL: it has to be given. */
constexpr weir_option option(const char *name, weir_option_type type,
                             const char *fallback, const char *help,
                             std::int64_t min = 0, std::int64_t max = 0,
                             const char *choices = nullptr)
{
    return {name, type, fallback, min, max, choices, help, 0};
}

/* What the constructor of a plugin's handler is given; borrowed for it, but for
 * the loop. What it throws is why the plugin cannot be opened. */
class opening
{
  public:
    explicit opening(const weir_open *from) : it(from) {}
    const weir_open *get() const { return it; }
    std::string_view topic() const { return it->topic; }
    /* Of options, by their place. */
    const char *text(std::size_t at) const { return it->values[at].text; }
    std::int64_t number(std::size_t at) const { return it->values[at].number; }
    /* NULL: this host has none to give. */
    weir_loop *loop() const { return weir_open_loop(it); }

  private:
    const weir_open *it;
};

namespace detail
{

inline int refuse(const weir_open *with, int code, const char *why) noexcept
{
    std::size_t len =
        std::string_view(why).copy(with->error, with->error_cap - 1);

    with->error[len] = '\0';
    return code;
}

template <class H> int open(const weir_open *with, void **ret_self) noexcept
{
    try {
        if constexpr (std::is_constructible_v<H, const opening &>)
            *ret_self = new H(opening(with));
        else
            *ret_self = new H();
        return WEIR_OK;
    } catch (const std::bad_alloc &) {
        return refuse(with, WEIR_ENOMEM, "out of memory");
    } catch (const error &thrown) {
        return refuse(with, thrown.code(), thrown.what());
    } catch (const std::exception &thrown) {
        return refuse(with, WEIR_EINVAL, thrown.what());
    } catch (...) {
        return refuse(with, WEIR_EINVAL,
                      "an exception that is no std::exception");
    }
}

template <class H> int flush(void *self) noexcept
{
    try {
        static_cast<H *>(self)->flush();
        return WEIR_OK;
    } catch (const std::bad_alloc &) {
        return WEIR_SNOOZE;
    } catch (const std::system_error &thrown) {
        return is_short(thrown.code()) ? static_cast<int>(WEIR_SNOOZE)
                                       : WEIR_ESYSTEM;
    } catch (...) {
        return WEIR_ESYSTEM;
    }
}

template <class H> void close(void *self) noexcept
{
    delete static_cast<H *>(self);
}

} // namespace detail

/* The table of a plugin whose handler is the class H:
 *
 *     WEIR_PLUGIN_EXPORT = weir::plugin<shout>("shout");
 */
template <class H>
constexpr weir_plugin plugin(const char *name, const char *version = nullptr,
                             const char *summary = nullptr)
{
    weir_plugin it{};

    it.abi = WEIR_PLUGIN_ABI;
    it.size = sizeof(it);
    it.name = name;
    it.version = version;
    it.summary = summary;
    if constexpr (detail::has_options<H>::value) {
        it.options = H::options;
        it.option_count = std::extent_v<decltype(H::options)>;
        it.option_size = sizeof(weir_option);
    }
    it.open = detail::open<H>;
    it.close = detail::close<H>;
    if constexpr (detail::is_batch<H>)
        it.run_batch = detail::run_batch<H>;
    else
        it.run = detail::run<H>;
    if constexpr (detail::flushes<H>::value)
        it.flush = detail::flush<H>;
    if constexpr (detail::blocks<H>::value)
        it.flags = WEIR_PLUGIN_BLOCKING;
    return it;
}

} // namespace weir
#endif
