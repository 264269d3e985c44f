// The queue of an MQTT client, in memory (mqtt/message_queue.h) and in a file (mqtt/queue_file.h).

#include "mqtt/message_queue.h"

#include <CppUTest/TestHarness.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "mqtt/queue_file.h"
#include "tests/support/folder.h"

namespace mqtt_queue_test {

using namespace coir::mqtt;
using coir::ErrorCode;

namespace {

constexpr std::size_t kBytes = 256;

MessageQueue make_queue(std::size_t bytes = kBytes) {
  return std::move(*MessageQueue::create(bytes, 100));
}

PublishFields message(MessageQueue& queue, std::string_view payload) {
  return {.topic = "t", .payload = payload, .id = queue.fresh_id(), .qos = 1};
}

// all writes the payloads of a queue one behind the other.
std::string_view all(const MessageQueue& queue, std::span<char> room) {
  std::size_t size = 0;
  queue.each([&](const PublishFields& each) {
    memcpy(room.data() + size, each.payload.data(), each.payload.size());
    size += each.payload.size();
  });
  return {room.data(), size};
}

}  // namespace

TEST_GROUP(MqttQueue) {
  char room[4096];
};

TEST(MqttQueue, keeps_order_while_answers_come_in_any) {
  MessageQueue queue = make_queue();
  for (const char* text : {"a", "b", "c", "d"}) queue.push(message(queue, text));
  PublishFields next;
  std::uint16_t ids[2];
  for (std::uint16_t& id : ids) {
    CHECK_TRUE(queue.next(next, 2));
    id = next.id;
    queue.took();
  }
  CHECK_FALSE(queue.next(next, 2));  // as many as may be are in flight
  CHECK_TRUE(queue.acknowledge(ids[1]));
  CHECK_FALSE(queue.acknowledge(ids[1]));
  CHECK_TRUE(queue.next(next, 2) && next.payload == "c" && !next.duplicate);
  queue.restart();
  CHECK_TRUE(queue.next(next, 2) && next.payload == "a" && next.duplicate && next.id == ids[0]);
  STRNCMP_EQUAL("acd", all(queue, room).data(), 3);
  CHECK_EQUAL(3u, queue.messages());
}

TEST(MqttQueue, goes_round_for_ever_in_one_buffer) {
  MessageQueue queue = make_queue(4096);
  char text[64];
  PublishFields next;
  for (unsigned i = 0; i < 200'000; ++i) {
    while (!queue.has_room({.topic = "t", .payload = {text, sizeof text}})) {
      CHECK_TRUE(queue.next(next, 1000));
      const std::uint16_t id = next.id;
      queue.took();
      CHECK_TRUE(queue.acknowledge(id));
    }
    memset(text, static_cast<int>('a' + i % 26), sizeof text);
    queue.push(message(queue, {text, sizeof text}));
  }
  CHECK_TRUE(queue.messages() > 40);
}

TEST(MqttQueue, drops_its_oldest_though_it_is_in_flight) {
  MessageQueue queue = make_queue();
  for (const char* text : {"a", "b"}) queue.push(message(queue, text));
  PublishFields next;
  CHECK_TRUE(queue.next(next, 9));
  const std::uint16_t id = next.id;
  queue.took();
  CHECK_EQUAL(id, queue.drop_oldest());
  CHECK_EQUAL(0u, queue.in_flight());
  CHECK_FALSE(queue.acknowledge(id));
  CHECK_TRUE(queue.next(next, 9) && next.payload == "b");
}

TEST_GROUP(MqttQueueFile) {
  // A child that is killed leaves in this folder what it was writing.
  coir::test::Folder folder;
  const char* const path = folder.at("queue");
  char room[8192];

  void add(QueueFile& file, MessageQueue& queue, std::string_view payload) {
    const PublishFields next = message(queue, payload);
    CHECK_TRUE(file.add(next, queue).has_value());
    queue.push(next);
  }
  std::string_view read_again(std::size_t bytes = kBytes) {
    MessageQueue queue = make_queue(bytes);
    QueueFile file;
    CHECK_TRUE(file.open(path, false, bytes, queue).has_value());
    return all(queue, room);
  }
  off_t file_size() {
    struct stat status{};
    CHECK_EQUAL(0, stat(path, &status));
    return status.st_size;
  }
};

TEST(MqttQueueFile, holds_over_a_restart_what_is_not_acknowledged) {
  {
    MessageQueue queue = make_queue();
    QueueFile file;
    CHECK_TRUE(file.open(path, true, kBytes, queue).has_value());
    for (const char* text : {"a", "b", "c"}) add(file, queue, text);
    PublishFields next;
    CHECK_TRUE(queue.next(next, 9));
    const std::uint16_t id = next.id;
    queue.took();
    CHECK_TRUE(queue.acknowledge(id));
    CHECK_TRUE(file.remove(id, queue).has_value());
  }
  STRNCMP_EQUAL("bc", read_again().data(), 2);
  struct stat status{};
  CHECK_EQUAL(0, stat(path, &status));
  CHECK_EQUAL(0600u, status.st_mode & 0777);
  // Ids go on, and what may have been sent is a duplicate.
  MessageQueue queue = make_queue();
  QueueFile file;
  CHECK_TRUE(file.open(path, false, kBytes, queue).has_value());
  PublishFields next;
  CHECK_TRUE(queue.next(next, 9) && next.duplicate && next.id == 2);
  CHECK_EQUAL(4, queue.fresh_id());
}

TEST(MqttQueueFile, every_cut_and_every_wrong_byte_ends_it_before_that_record) {
  {
    MessageQueue queue = make_queue();
    QueueFile file;
    CHECK_TRUE(file.open(path, false, kBytes, queue).has_value());
    add(file, queue, "a");
    add(file, queue, "b");
  }
  char whole[256];
  const int old = open(path, O_RDONLY | O_CLOEXEC);
  const auto size = static_cast<std::size_t>(read(old, whole, sizeof whole));
  close(old);
  const std::size_t record = (size - 8) / 2;
  const auto try_content = [&](std::string_view content) {
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK_EQUAL(static_cast<ssize_t>(content.size()), write(fd, content.data(), content.size()));
    close(fd);
    return read_again();
  };
  for (std::size_t cut = 0; cut <= size; ++cut) {
    const std::size_t expected = cut < 8 + record ? 0 : cut < size ? 1 : 2;
    CHECK_EQUAL(expected, try_content({whole, cut}).size());
  }
  for (std::size_t wrong = 8 + record; wrong < size; ++wrong) {
    char bytes[256];
    memcpy(bytes, whole, size);
    bytes[wrong] = static_cast<char>(bytes[wrong] ^ 1);
    CHECK_EQUAL(1u, try_content({bytes, size}).size());
  }
}

TEST(MqttQueueFile, stays_bounded_and_is_compacted) {
  MessageQueue queue = make_queue();
  QueueFile file;
  CHECK_TRUE(file.open(path, false, kBytes, queue).has_value());
  off_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    add(file, queue, "0123456789");
    PublishFields next;
    CHECK_TRUE(queue.next(next, 9));
    const std::uint16_t id = next.id;
    queue.took();
    CHECK_TRUE(queue.acknowledge(id));
    CHECK_TRUE(file.remove(id, queue).has_value());
    most = std::max(most, file_size());
  }
  CHECK_TRUE(most < static_cast<off_t>(4 * kBytes + 1024));
  CHECK_EQUAL(0u, read_again().size());
}

TEST(MqttQueueFile, of_a_larger_queue_leaves_its_latest_to_a_smaller_one) {
  {
    MessageQueue queue = make_queue(4096);
    QueueFile file;
    CHECK_TRUE(file.open(path, false, 4096, queue).has_value());
    char text[64];
    for (int i = 0; i < 40; ++i) {
      memset(text, '0' + i, sizeof text);
      add(file, queue, {text, sizeof text});
    }
  }
  CHECK_TRUE(file_size() > static_cast<off_t>(3 * kBytes + 2048));
  const std::string_view left = read_again();
  CHECK_EQUAL(3u * 64, left.size());
  CHECK_EQUAL('0' + 39, left.back());
}

TEST(MqttQueueFile, a_strangers_file_is_left_alone) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  CHECK_EQUAL(9, write(fd, "my diary\n", 9));
  close(fd);
  MessageQueue queue = make_queue();
  QueueFile file;
  const auto opened = file.open(path, false, kBytes, queue);
  CHECK_TRUE(!opened && opened.error() == ErrorCode::invalid);
  CHECK_EQUAL(9, file_size());
}

// A process that is killed while it appends leaves what it had told of, but for the last at most.
TEST(MqttQueueFile, survives_a_kill_in_the_middle_of_a_write) {
  for (int round = 0; round < 8; ++round) {
    unlink(path);
    int pipe_ends[2];
    CHECK_EQUAL(0, pipe2(pipe_ends, O_CLOEXEC));
    const pid_t child = fork();
    if (child == 0) {
      MessageQueue queue = make_queue(4096);
      QueueFile file;
      if (!file.open(path, false, 4096, queue)) _exit(1);
      for (;;) {
        char text[32];
        memset(text, 'x', sizeof text);
        const PublishFields next = message(queue, {text, sizeof text});
        while (!queue.has_room(next)) {
          const std::uint16_t id = queue.drop_oldest();
          if (!file.remove(id, queue)) _exit(1);
        }
        if (!file.add(next, queue)) _exit(1);
        queue.push(next);
        if (write(pipe_ends[1], &next.id, sizeof next.id) != sizeof next.id) _exit(1);
      }
    }
    close(pipe_ends[1]);
    std::uint16_t told = 0, id = 0;
    for (int i = 0; i < 300 + 37 * round; ++i) {
      if (read(pipe_ends[0], &id, sizeof id) == sizeof id) told = id;
    }
    kill(child, SIGKILL);
    while (read(pipe_ends[0], &id, sizeof id) == sizeof id) told = id;
    close(pipe_ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    MessageQueue queue = make_queue(4096);
    QueueFile file;
    CHECK_TRUE(file.open(path, false, 4096, queue).has_value());
    std::uint16_t last = 0;
    queue.each([&](const PublishFields& each) {
      CHECK_TRUE(last == 0 || each.id == last + 1);
      last = each.id;
    });
    CHECK_TRUE(last == told || last == told + 1);
  }
}

}  // namespace mqtt_queue_test
