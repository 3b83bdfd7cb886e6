/* SPDX-License-Identifier: MIT */
/* A program that says what came of its calls. Usage: host URL */
#include <ev.h>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>
#include <weir/weir.hpp>

template <class F> static void say(const char *what, F fn)
{
    try {
        fn();
        std::cout << what << ": fine\n";
    } catch (const weir::error &thrown) {
        std::cout << what << ": " << weir_error_name(thrown.code()) << " "
                  << thrown.what() << '\n';
    }
}

static weir::options options_of(const char *url)
{
    weir::options options;

    options.loop = ev_default_loop(0);
    options.redis_url = url;
    return options;
}

static void refusals(const char *url)
{
    say("url", [] { weir::reactor none(options_of("redis://")); });
    say("loop", [&] {
        auto options = options_of(url);

        options.loop = nullptr;
        weir::reactor none(options);
    });
    say("json", [] { (void)weir::body_from_json("{oops"); });
}

static weir::new_job job_of(const std::string &json)
{
    weir::new_job job;

    job.body = weir::body_from_json(json);
    job.headers.emplace_back("trace", "t-1");
    return job;
}

/* Serves, adds, looks at what the handler sees. */
static void work(const char *url)
{
    weir::reactor first(options_of(url));
    weir::reactor weir(std::move(first));
    int left = 2;

    weir.serve(
        "t",
        [&](weir::job &job) {
            if (job.i64("n") == 1 && job.counters().attempt == 1)
                throw std::runtime_error("once more");
            std::cout << job.topic() << " " << job.json() << " "
                      << job.header("trace") << " " << job.headers().size()
                      << " " << job.str("none").value_or("none") << " after "
                      << job.counters().failures << '\n';
            if (--left == 0)
                weir.stop([] { ev_break(ev_default_loop(0), EVBREAK_ALL); });
            return weir::done();
        },
        {"retry=200ms"});
    say("again", [&] { weir.serve("t", [](weir::batch &) {}); });
    say("option", [&] {
        weir.serve("u", [](weir::job &) { return weir::done(); }, {"lease=1"});
    });
    weir.add("t", job_of("{\"n\":1}"), [&](int code, std::string_view) {
        std::cout << weir_error_text(code) << '\n';
        weir.add("t", job_of("{\"n\":2}"));
    });
    weir.call([](int code) { std::cout << weir_error_text(code) << '\n'; });
    ev_run(ev_default_loop(0), 0);
}

static struct ev_loop *loop()
{
    return ev_default_loop(0);
}

/* Two jobs are taken: one is settled, the other one goes back by itself. */
static void take(const char *url)
{
    weir::reactor weir(options_of(url));
    std::vector<weir::take> kept;

    weir.count_added();
    weir.add("taken", job_of("{\"n\":1}"));
    weir.add("taken", job_of("{\"n\":2}"));
    weir.when_added([&](int code) {
        std::cout << "added: " << weir_error_text(code) << '\n';
        weir.take("taken", 2, 1000,
                  [&](int rc, std::vector<weir::take> takes) {
                      std::cout << weir_error_text(rc) << ", " << takes.size()
                                << " taken: " << takes[0].job().json()
                                << (takes[0].is_lost() ? " lost" : "")
                                << (takes[0].token().empty() ? " no token" : "")
                                << '\n';
                      takes[0].settle(weir::done(), [&](int is) {
                          std::cout
                              << "settled: " << weir_error_text(is)
                              << (kept[0].get() == nullptr ? "" : " and had")
                              << '\n';
                          ev_break(loop(), EVBREAK_ALL);
                      });
                      kept.push_back(std::move(takes[0]));
                  },
                  {"lease=10s"});
    });
    ev_run(loop(), 0);
    say("wait", [&] { weir.take("taken", 1, -1, [](int, auto &&) {}); });
    weir.take("taken", 1, 1000, [&](int, std::vector<weir::take> takes) {
        std::cout << "back: " << takes[0].job().json() << '\n';
        takes[0].settle(weir::retry("later"));
        weir.when_room("taken", [](int) { std::cout << "room\n"; });
        weir.when_settled([](int) { ev_break(loop(), EVBREAK_ALL); });
    });
    ev_run(loop(), 0);
}

/* Callbacks that wait when the reactor goes are told so. */
static void leave(const char *url)
{
    weir::reactor weir(options_of(url));

    weir.add("t", {}, [](int code, std::string_view) {
        std::cout << "left: " << weir_error_name(code) << '\n';
    });
}

int main(int, char **argv)
{
    refusals(argv[1]);
    work(argv[1]);
    take(argv[1]);
    leave(argv[1]);
}
