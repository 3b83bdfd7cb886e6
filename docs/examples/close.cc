/* SPDX-License-Identifier: MIT */
/* A program in C++17 that embeds weir: adds three orders that are due in a
 * second, closes them on a thread, one of them at the second attempt, and stops.
 * Usage: close redis://127.0.0.1:6379 */
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <weir/weir.hpp>

int main(int argc, char **argv)
try {
    int left = 3;
    bool is_over = false;
    weir::options options;

    options.redis_url = argv[argc - 1];
    options.log_level = WEIR_LEVEL_WARN;
    options.log = [](weir_level, std::string_view line) {
        std::cerr << line << '\n';
    };
    weir::thread weir(options);

    /* On the reactor's thread; the rest runs on this one. */
    weir.serve("order.close",
               [&](weir::job &job) {
                   auto order = job.i64("order").value(); /* or an exception */

                   if (order == 2 && job.counters().attempt == 1)
                       throw std::runtime_error("the till is locked");
                   weir.tell([&, order, handle = job.handle()]() mutable {
                       std::cout << "closed order " << order << '\n';
                       handle.complete(weir::done());
                       if (--left == 0)
                           weir.stop([&] { is_over = true; });
                   });
                   return weir::pending();
               },
               {"retry=10ms"});
    weir.start();
    for (int order = 1; order <= left; order++) {
        weir::new_job job;

        job.body =
            weir::body_from_json("{\"order\": " + std::to_string(order) + "}");
        job.delay_ms = 1000;
        weir.add("order.close", job, [&](int code, std::string_view id) {
            if (code != WEIR_OK)
                std::cerr << id << ": " << weir_error_text(code) << '\n';
        });
    }
    while (!is_over)
        weir.wait(-1);
    return 0;
} catch (const std::exception &thrown) {
    std::cerr << "close: " << thrown.what() << '\n';
    return 1;
}
