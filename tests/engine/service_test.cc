#include "engine/service.h"

#include <gtest/gtest.h>

#include <future>
#include <random>

#include "support/toy_model.h"

namespace gannet::engine {
namespace {

using test::toy_greedy;
using test::ToyModel;

std::unique_ptr<Service> serve(ToyModel& model, int32_t max_seqs = 4) {
  auto engine =
      Engine::create(model, this_machine(), {.max_context = 64, .max_seqs = max_seqs, .n_threads = 1}, "toy");
  EXPECT_TRUE(engine.has_value());
  return std::make_unique<Service>(std::move(*engine));
}

GenerateRequest greedy(std::vector<int32_t> prompt, int32_t max_tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

TEST(Service, EveryRequestEndsOnceWhateverRacesWithIt) {
  ToyModel model;
  const auto service = serve(model);
  std::atomic<int> ends{0}, whole{0}, aborted{0}, failed{0};
  std::vector<std::thread> clients;
  constexpr int kClients = 4, kRequests = 200;
  for (int c = 0; c < kClients; ++c)
    clients.emplace_back([&, c] {
      std::mt19937 random(static_cast<uint32_t>(c));
      for (int i = 0; i < kRequests; ++i) {
        const std::vector<int32_t> prompt{c, i % 3, static_cast<int32_t>(random() % 11)};
        const bool bad = i % 17 == 0;
        const auto n = static_cast<int32_t>(1 + random() % 8);
        auto text = std::make_shared<std::vector<int32_t>>();
        auto ended = std::make_shared<std::atomic<bool>>(false);
        const Ticket ticket = service->submit(greedy(bad ? std::vector<int32_t>{99} : prompt, n),
                                              [&, text, ended, prompt, n](const ServiceEvent& event) {
                                                EXPECT_FALSE(*ended) << "an event after the end";
                                                const bool end = event.aborted || event.token.finished.has_value();
                                                const bool fail = event.token.finished == FinishReason::failed;
                                                if (!event.aborted && !fail)
                                                  text->push_back(event.token.sampled.token);
                                                if (!end) return;
                                                *ended = true;
                                                ++ends;
                                                if (event.aborted)
                                                  ++aborted;
                                                else if (fail)
                                                  ++failed;
                                                else if (*text == toy_greedy(prompt, n))
                                                  ++whole;
                                              });
        if (random() % 3 == 0) service->abort(ticket);
        if (random() % 5 == 0)
          service->abort(Ticket{static_cast<int64_t>(random() % 1000)});  // anybody's, or nobody's
      }
    });
  for (auto& client : clients) client.join();
  for (int i = 0; i < 2000 && ends < kClients * kRequests; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(ends, kClients * kRequests);
  EXPECT_EQ(whole + aborted + failed, ends) << "a request ended with another text than the model's";
  EXPECT_GT(whole, 0);
  EXPECT_GT(failed, 0);
  service->stop();
  EXPECT_EQ(service->counts().kv_blocks_held, 0);
}

TEST(Service, StopEndsWhatRuns) {
  ToyModel model;
  auto service = serve(model);
  std::promise<void> started, ended;
  std::atomic<bool> first{true};
  service->submit(greedy({1}, 60), [&](const ServiceEvent& event) {
    if (first.exchange(false)) started.set_value();
    if (event.aborted || event.token.finished) ended.set_value();
  });
  started.get_future().wait();
  service->stop();
  EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds(1)), std::future_status::ready);
  bool late = false;
  service->submit(greedy({1}, 1), [&](const ServiceEvent& event) { late = event.aborted; });
  EXPECT_TRUE(late) << "a request after stop() must end at once";
}

}  // namespace
}  // namespace gannet::engine
